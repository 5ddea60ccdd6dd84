//! Why a file did not become a [`Program`](crate::Program), in its author's terms.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use crate::program::Line;

/// Fault of a file: what was wrong, where, and what to do.
///
/// A box around [`Fault`], so that the way of success stays cheap; the fields are reached through it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(Box<Fault>);

/// The fields of a [`LoadError`]. What is not known is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// the object file, as it was named to the loader
    pub file: String,
    /// the ELF section
    pub section: Option<String>,
    /// the function, variable or symbol
    pub symbol: Option<String>,
    /// the number of the 8-byte instruction slot in its function, from 0
    pub slot: Option<u32>,
    /// the line of the author's source
    pub line: Option<Line>,
    /// which rule was broken, a stable kebab-case name, e.g. `unknown-map-type`
    pub rule: &'static str,
    /// what was wrong
    pub problem: String,
    /// what to do
    pub remedy: String,
}

impl LoadError {
    pub(crate) fn new(
        rule: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> LoadError {
        LoadError(Box::new(Fault {
            file: String::new(),
            section: None,
            symbol: None,
            slot: None,
            line: None,
            rule,
            problem: problem.into(),
            remedy: remedy.into(),
        }))
    }

    /// A part of the file contradicts the format it claims to have.
    pub(crate) fn malformed(problem: impl Into<String>) -> LoadError {
        LoadError::new(
            "malformed",
            problem,
            "compile the program again: the file is damaged or was not written by a compiler",
        )
    }

    // The innermost code knows the place best, so what is already named stays.

    /// The file that was being read.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> LoadError {
        self.0.file = file.to_owned();
        self
    }

    pub(crate) fn in_section(mut self, section: &str) -> LoadError {
        self.0.section.get_or_insert_with(|| printable(section));
        self
    }

    pub(crate) fn at_symbol(mut self, symbol: &str) -> LoadError {
        self.0.symbol.get_or_insert_with(|| printable(symbol));
        self
    }

    pub(crate) fn at_slot(mut self, slot: u32) -> LoadError {
        self.0.slot.get_or_insert(slot);
        self
    }

    pub(crate) fn at_line(mut self, line: Option<Line>) -> LoadError {
        if self.0.line.is_none() {
            self.0.line = line;
        }
        self
    }
}

impl Deref for LoadError {
    type Target = Fault;

    fn deref(&self) -> &Fault {
        &self.0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = &self.line {
            write!(f, "{}:{}: ", line.file, line.line)?;
        }
        write!(f, "{}: ", self.problem)?;
        write!(f, "{}", self.remedy)?;
        write!(f, " [{}", self.file)?;
        if let Some(section) = &self.section {
            write!(f, ", section {section}")?;
        }
        if let Some(symbol) = &self.symbol {
            write!(f, ", {symbol}")?;
        }
        if let Some(slot) = self.slot {
            write!(f, ", instruction {slot}")?;
        }
        write!(f, "; {}]", self.rule)
    }
}

/// A name out of a file, fit for a terminal: no control characters, at most 128 of the others.
pub(crate) fn printable(name: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut text: String = name.chars().take(128).map(clean).collect();
    if name.chars().nth(128).is_some() {
        text.push('…');
    }
    text
}
