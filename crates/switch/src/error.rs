//! Refusals: what was wrong, and how to fix it.

use std::fmt;

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// what was wrong
    pub what: String,
    /// how to fix it
    pub help: String,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  help: {}", self.what, self.help)
    }
}

impl std::error::Error for Error {}

impl From<millrace_synth::diagram::Full> for Error {
    fn from(_: millrace_synth::diagram::Full) -> Self {
        Self::new(
            "the classes have too many boundaries to be divided into what a switch sees",
            "divide the chain, and let the switch have its first part",
        )
    }
}

impl From<millrace_synth::rows::Stop> for Error {
    fn from(stop: millrace_synth::rows::Stop) -> Self {
        match stop {
            millrace_synth::rows::Stop::Full => millrace_synth::diagram::Full.into(),
            millrace_synth::rows::Stop::Rows(most) => Self::new(
                format!("classes by addresses and ports become more than {most} rows"),
                "divide the chain, and let the switch have its first part",
            ),
        }
    }
}
