//! Errors in a description: place, cause, fix.

use std::path::PathBuf;

/// An error in a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", place(.file, .line))]
pub struct ChainError {
    /// the file; none for a command line
    pub file: Option<PathBuf>,
    /// its line, from 1
    pub line: Option<usize>,
    /// what is wrong
    pub what: String,
    /// what to do
    pub help: String,
}

fn place(file: &Option<PathBuf>, line: &Option<usize>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{}:{line}: ", file.display()),
        (Some(file), None) => format!("{}: ", file.display()),
        (None, _) => String::new(),
    }
}
