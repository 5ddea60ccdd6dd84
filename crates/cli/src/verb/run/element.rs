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

/// Starts a guest for each worker.
pub fn start(spec: &Spec, workers: usize) -> Result<Code, Failure> {
    if spec.slot.is_some() && workers > 1 {
        return Err(
            Failure::wrong(format!("{}: one slot and {workers} workers", spec.name))
                .help("leave slot= out: each worker's guest then gets one of its own"),
        );
    }
    let mut started: Vec<Box<dyn Foreign>> = Vec::new();
    for _ in 0..workers {
        let guest = Hosted::start(spec.clone()).map_err(|e| failure(&e))?;
        started.push(Box::new(millrace_guest::Element::new(guest)));
    }
    Ok(Code::Foreign(Arc::new(Mutex::new(started))))
}

fn failure(error: &GuestError) -> Failure {
    Failure::wrong(error).help(error.help())
}
