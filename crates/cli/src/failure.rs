//! Failures of the command: what was wrong, and what to do.

use std::fmt::Display;

use crate::screen;

/// Done.
pub const DONE: u8 = 0;
/// The answer is no.
pub const NO: u8 = 1;
/// Wrong use, or an input or output that failed.
pub const WRONG: u8 = 2;

/// Why a verb ended without its answer.
#[derive(Debug)]
pub struct Failure {
    /// what was wrong, on one line
    pub what: String,
    /// what to do about it
    pub help: Option<String>,
    /// longer text that belongs to it, such as the compiler's own messages
    pub detail: Option<String>,
    /// the exit status
    pub code: u8,
}

impl Failure {
    /// Wrong use, or an input or output that failed.
    pub fn wrong(what: impl Display) -> Self {
        Self {
            what: what.to_string(),
            help: None,
            detail: None,
            code: WRONG,
        }
    }

    /// The same with what to do about it.
    pub fn help(mut self, help: impl Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    /// Tells it on standard error, and as JSON on standard output if that was asked for.
    pub fn report(&self, json: bool) {
        if let Some(detail) = &self.detail {
            screen::err(detail.trim_end());
        }
        screen::err(&format!("error: {}", self.what));
        if let Some(help) = &self.help {
            screen::err(&format!("help: {help}"));
        }
        if json {
            let document = serde_json::json!({
                "error": self.what,
                "help": self.help,
                "detail": self.detail,
            });
            screen::out(&document.to_string());
        }
    }
}
