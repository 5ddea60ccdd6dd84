//! Errors of the Click language, with the place in the author's file.

use std::fmt;
use std::sync::Arc;

/// A place in a configuration, as `# LINE "FILE"` directives rename it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// the file's name
    pub file: Arc<str>,
    /// line, from 1
    pub line: u32,
    /// column in bytes, from 1
    pub column: u32,
    /// the line itself, cut after [`MOST_SHOWN`] bytes
    pub text: Arc<str>,
}

/// Bytes of a line that is shown, at most.
pub const MOST_SHOWN: usize = 200;

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A refusal: the place, what is wrong there, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// none for a fault of the configuration as a whole
    pub place: Option<Place>,
    /// what is wrong
    pub what: String,
    /// how to fix it
    pub help: String,
}

impl Error {
    /// An error at a place.
    pub fn at(place: &Place, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            place: Some(place.clone()),
            what: what.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => {
                writeln!(f, "{place}:{}: {}", place.column, self.what)?;
                let before = place.text.get(..place.column as usize - 1).unwrap_or("");
                // Tabs stay, so that the mark stands below its character.
                let pad: String = before
                    .chars()
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                write!(f, "  {}\n  {pad}^\nhelp: {}", place.text, self.help)
            }
            None => write!(f, "{}\nhelp: {}", self.what, self.help),
        }
    }
}

impl std::error::Error for Error {}
