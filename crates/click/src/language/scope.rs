//! What a file says before it is expanded: scopes of elements and connections.

use crate::error::Place;

/// The class of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// one that is not defined in the text
    Named(String),
    /// a compound element, by its number in [`File::compounds`]
    Compound(usize),
    /// where connections pass a border unchanged: `input`, `output`, both ends of a group
    Border,
}

/// An element of a scope.
#[derive(Clone, Debug)]
pub struct Declared {
    /// its name, unique in the scope
    pub name: String,
    /// its class
    pub class: Class,
    /// the text between its parentheses, as written
    pub config: String,
    /// where it stands
    pub place: Place,
}

/// A connection between elements of a scope, by their numbers.
#[derive(Clone, Debug)]
pub struct Connection {
    /// element and output
    pub from: (usize, usize),
    /// element and input
    pub to: (usize, usize),
    /// where it stands
    pub place: Place,
}

/// Elements and connections of the file or of a compound element.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// in the order of their declarations; in a compound element 0 is `input` and 1 `output`
    pub elements: Vec<Declared>,
    /// in their order
    pub connections: Vec<Connection>,
    /// `define(…)`: name and value, as written
    pub defines: Vec<(String, String)>,
}

/// How a formal parameter takes its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formal {
    /// by its position
    Positional,
    /// by a word before it
    Keyword(String),
    /// all arguments that are left
    Rest,
}

/// A compound element class, one of its overloads.
#[derive(Clone, Debug)]
pub struct Compound {
    /// the name, empty for an anonymous one
    pub name: String,
    /// parameters and their names
    pub formals: Vec<(Formal, String)>,
    /// its body
    pub scope: Scope,
    /// inputs and outputs that its body uses
    pub ports: (usize, usize),
    /// the overload that is tried next
    pub next: Option<Class>,
    /// how many scopes are around its body
    pub depth: usize,
    /// where it begins
    pub place: Place,
}

/// A file that was read, with those that it requires.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// what stands in no compound element
    pub scope: Scope,
    /// compound element classes, inner ones first
    pub compounds: Vec<Compound>,
    /// `require(…)` but libraries, as written
    pub requirements: Vec<String>,
}
