//! Errors with their fix, for a person and over the socket.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

/// A refusal or a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// for programs; docs/control.md lists them
    pub code: String,
    /// what was wrong
    pub what: String,
    /// what to do
    pub help: Option<String>,
}

impl Trouble {
    /// Something wrong, with no advice yet.
    pub fn new(code: &str, what: impl Display) -> Self {
        Self {
            code: code.to_owned(),
            what: what.to_string(),
            help: None,
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Display) -> Self {
        self.help = Some(help.to_string());
        self
    }
}

impl Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Trouble {}
