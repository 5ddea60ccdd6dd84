//! The Click language: text to a flat graph of elements.
//!
//! [`parse`](parse::parse) reads declarations and connections into scopes, [`flatten`](flatten::flatten) expands
//! compound elements and variables. The language is that of Click 2.1 (Kohler et al., The Click Modular Router, TOCS
//! 18(3), 2000, section 2, and the manual page click(5)), with FastClick's additions. Any class name is accepted; whether an
//! element of that class exists here is not the language's concern.
//!
//! # Budgets
//! What a file of a few bytes could make without bound is limited ([`Limits`]): nesting, elements, connections, bytes
//! of expanded variables, errors. Whatever is beyond is an error.

pub mod args;
mod connect;
pub mod flatten;
mod lex;
mod list;
pub mod parse;
pub mod scope;
mod unparse;
pub mod variables;

pub use flatten::{Element, Graph, Link, Port, flatten};
pub use parse::{Library, parse};

/// Bounds of what a configuration may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// bytes of one file
    pub bytes: usize,
    /// compound elements and groups within each other, in the text
    pub nesting: usize,
    /// compound elements within each other, expanded
    pub depth: usize,
    /// elements after expansion, and in one scope
    pub elements: usize,
    /// connections after expansion, and in one scope
    pub connections: usize,
    /// number of a port
    pub port: usize,
    /// bytes of all configuration strings after expansion
    pub expanded: usize,
    /// files of `require(library …)`
    pub libraries: usize,
    /// errors that are reported
    pub errors: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            nesting: 64,
            depth: 128,
            elements: 1 << 16,
            connections: 1 << 18,
            port: 65_535,
            expanded: 128 << 20,
            libraries: 64,
            errors: 50,
        }
    }
}
