//! What stands in a chain: functions that are built, and guests, which are other people's programs.

use std::sync::{Arc, Mutex};

use millrace_dataplane::worker::Code;
use millrace_dataplane::worker::foreign::Foreign;
use millrace_guest::{GuestError, Hosted, Spec, Word};

use crate::failure::Failure;
use crate::function::Function;

/// An element of a chain.
pub enum Element {
    /// a function
    Function(Box<Function>),
    /// a guest, not started yet
    Guest(Box<Spec>),
}

/// The only drop reason of a guest.
pub const DROPPED: &str = "by_guest";

/// Whether a word names a guest.
pub fn is_guest(word: &str) -> bool {
    Word::of(word).is_some()
}

impl Element {
    /// The guest that a word names, if it names one.
    pub fn guest(word: &str, stdout_taken: bool) -> Option<Result<Self, Failure>> {
        let word = Word::of(word)?;
        Some(word.spec().map_err(|e| failure(&e)).map(|mut spec| {
            if stdout_taken {
                spec.output = 2;
            }
            Self::Guest(Box::new(spec))
        }))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::Guest(spec) => &spec.name,
        }
    }

    /// Names of its ports; empty where it names none.
    pub fn ports(&self) -> &[String] {
        match self {
            Self::Function(function) => &function.ports,
            Self::Guest(_) => &[],
        }
    }

    /// The function, if it is one.
    pub fn function(&self) -> Option<&Function> {
        match self {
            Self::Function(function) => Some(function),
            Self::Guest(_) => None,
        }
    }
}

/// Starts a guest, for the one worker of its run.
pub fn start(spec: &Spec) -> Result<Code, Failure> {
    let guest = Hosted::start(spec.clone()).map_err(|e| failure(&e))?;
    let started: Box<dyn Foreign> = Box::new(millrace_guest::Element::new(guest));
    Ok(Code::Foreign(Arc::new(Mutex::new(vec![started]))))
}

fn failure(error: &GuestError) -> Failure {
    Failure::wrong(error).help(error.help())
}
