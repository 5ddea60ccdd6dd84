//! Errors of a text in the packet language.

use std::fmt;

/// A place in a text and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file, as it was named; empty for a packet that stands alone.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The round of the `repeat` that it is in.
    pub round: Option<u64>,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            write!(f, "column {}: {}", self.column, self.message)?;
        } else {
            write!(
                f,
                "{}:{}:{}: {}",
                self.file, self.line, self.column, self.message
            )?;
        }
        match self.round {
            Some(round) => write!(f, " (in round {round})"),
            None => Ok(()),
        }
    }
}

/// An error within a line: its column and message.
pub(super) struct Fault {
    pub(super) column: usize,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(column: usize, message: impl Into<String>) -> Self {
        Self {
            column,
            message: message.into(),
        }
    }

    pub(super) fn at(self, file: &str, line: usize, round: Option<u64>) -> Error {
        let Self { column, message } = self;
        Error {
            file: file.to_owned(),
            line,
            column,
            round,
            message,
        }
    }
}
