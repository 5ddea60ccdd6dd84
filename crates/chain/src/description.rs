//! The value that describes a chain.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use crate::error::{ChainError, Place};

/// The most elements that a description may have.
pub const MOST_ELEMENTS: usize = millrace_topology::MOST_ELEMENTS;

/// A chain as somebody described it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// the file that it stands in, whose folder relative paths begin at; none for a command line
    pub file: Option<PathBuf>,
    /// what that file says; empty for a command line
    pub text: String,
    /// what the run is called, if that is said
    pub name: Option<String>,
    /// what else the file says of the run, in its order; which keys there are is known where they are read
    pub settings: Vec<Setting>,
    /// the elements, each name once
    pub elements: Vec<Element>,
    /// ports that lead to each other
    pub connections: Vec<(Port, Port)>,
    /// where packets enter and leave: the ports of the chain, in their order
    pub entries: Vec<Port>,
    /// what these are called; empty: as the elements call them
    pub called: Vec<String>,
}

/// A key at the top of a file that says something of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// the key
    pub name: String,
    /// the bytes of the file that it and its value are
    pub span: Range<usize>,
    /// what it is set to
    pub given: Given,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// true or false
    Switch(bool),
    /// a text or a number, as it would stand on a command line
    One(String),
    /// several of these, with their bytes
    Several(Vec<(String, Range<usize>)>),
}

/// An element.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// its name
    pub name: String,
    /// the line that it begins in, from 1
    pub line: Option<usize>,
    /// the bytes of its keys with their values: of `nf`, and of a member of a table `set.NAME`
    pub keys: Vec<(String, Range<usize>)>,
    /// what it is
    pub what: What,
}

/// Kind of an element.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// a function
    Function(Function),
    /// another program
    Guest(Guest),
}

/// A function as it is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// the word that names it, as for `millrace run`
    pub word: String,
    /// which program of an object
    pub program: Option<String>,
    /// settings, `NAME=VALUE`
    pub set: Vec<String>,
    /// capacities, `OBJECT=N`
    pub capacity: Vec<String>,
    /// entries from files, `OBJECT=FILE`
    pub maps: Vec<String>,
    /// the elements that it was linked from, with their words; none of a function as it was named
    pub members: Vec<(String, String)>,
}

/// Another program as it is named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guest {
    /// a command in the shell's quoting; with `guest:` before it or `guest,OPTION,…:` on a command line
    pub command: String,
    /// its words, instead of a command
    pub arguments: Vec<String>,
    /// environment: what is set, over what the run has
    pub environment: BTreeMap<String, String>,
    /// options of docs/guests.md, in order: name, value (empty for a switch), line
    pub options: Vec<(String, String, Option<usize>)>,
}

/// A port of an element, as it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// the element
    pub element: String,
    /// its port, by name or number
    pub port: String,
    /// the line that this stands in
    pub line: Option<usize>,
}

impl Description {
    /// Of the words of a command line: a line of functions and guests. Who is called like one before gets a number:
    /// `name` says what a word is called.
    #[must_use]
    pub fn line(words: &[String], name: impl Fn(&str) -> String) -> Self {
        let mut elements: Vec<Element> = Vec::new();
        for word in words {
            let plain = name(word);
            let taken = |name: &str| elements.iter().any(|e| e.name == name);
            let mut own = plain.clone();
            let mut number = 1;
            while taken(&own) {
                number += 1;
                own = format!("{plain}-{number}");
            }
            let what = match is_guest(word) {
                true => What::Guest(Guest {
                    command: word.clone(),
                    ..Guest::default()
                }),
                false => What::Function(Function {
                    word: word.clone(),
                    ..Function::default()
                }),
            };
            elements.push(Element {
                name: own,
                line: None,
                keys: Vec::new(),
                what,
            });
        }
        Self {
            elements,
            ..Self::default()
        }
    }

    /// Whether its elements stand in a row, in their order: nothing else was said.
    #[must_use]
    pub fn is_line(&self) -> bool {
        self.connections.is_empty() && self.entries.is_empty()
    }

    /// Something wrong with it, in a line.
    #[must_use]
    pub fn wrong(&self, line: Option<usize>, what: String, help: &str) -> ChainError {
        ChainError {
            file: self.file.clone(),
            place: line.map(|line| Place::line(&self.text, line)),
            what,
            help: help.to_owned(),
        }
    }

    /// The same of a range of the file's bytes.
    #[must_use]
    pub fn wrong_at(&self, span: &Range<usize>, what: String, help: &str) -> ChainError {
        ChainError {
            place: Some(Place::of(&self.text, span)),
            ..self.wrong(None, what, help)
        }
    }
}

impl Element {
    /// The bytes of a key of it, see [`Element::keys`].
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&Range<usize>> {
        let found = self.keys.iter().find(|(key, _)| key == name);
        found.map(|(_, span)| span)
    }
}

/// Whether a word of a command line names a guest.
#[must_use]
pub fn is_guest(word: &str) -> bool {
    let rest = word.strip_prefix("guest");
    rest.is_some_and(|r| r.starts_with(':') || (r.starts_with(',') && r.contains(':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_line_whose_names_differ() {
        let words = ["nop", "guest:tcpdump -i @", "nop", "guest,limit=1:tcpdump"];
        let words: Vec<_> = words.iter().map(|w| (*w).to_owned()).collect();
        let plain = |word: &str| {
            if is_guest(word) {
                "tcpdump".into()
            } else {
                word.to_owned()
            }
        };
        let chain = Description::line(&words, plain);
        let names: Vec<_> = chain.elements.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["nop", "tcpdump", "nop-2", "tcpdump-2"]);
        assert!(chain.is_line() && chain.file.is_none());
        assert!(!is_guest("guest") && !is_guest("guests:x") && !is_guest("guest,x"));
    }
}
