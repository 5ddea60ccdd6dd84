//! The verbs, one file each.

mod run;

use clap::Subcommand;

use crate::failure::Failure;

/// What `millrace` can do.
#[derive(Subcommand)]
pub enum Verb {
    /// Run a network function between ports and account for every packet
    Run(run::Run),
}

impl Verb {
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        match self {
            Self::Run(verb) => verb.json,
        }
    }

    /// Does it, and gives the exit status.
    pub fn perform(self) -> Result<u8, Failure> {
        match self {
            Self::Run(verb) => verb.perform(),
        }
    }
}
