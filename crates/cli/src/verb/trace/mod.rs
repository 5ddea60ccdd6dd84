//! `millrace trace`: makes and describes traffic.

mod acl;
mod generate;
mod info;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Make and describe captures.
#[derive(Args)]
pub struct Trace {
    #[command(subcommand)]
    what: What,
}

/// What can be done with captures.
#[derive(Subcommand)]
enum What {
    Gen(Box<generate::Generate>),
    Info(info::Info),
    Acl(acl::Acl),
}

impl Trace {
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        match &self.what {
            What::Gen(verb) => verb.json,
            What::Info(verb) => verb.json,
            What::Acl(verb) => verb.json,
        }
    }

    /// Does it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        match &self.what {
            What::Gen(verb) => verb.perform(),
            What::Info(verb) => verb.perform(),
            What::Acl(verb) => verb.perform(),
        }
    }
}
