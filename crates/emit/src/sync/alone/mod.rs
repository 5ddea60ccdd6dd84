//! Treatment `alone`: one thread owns an instance. The reference for all others, and the fastest on one core.

mod burst;

use millrace_check::Checked;
use millrace_object::Program;

use super::{Input, Sharing, Treatment};
use crate::codegen::{self, Burst};
use crate::error::Error;

/// Each worker, or the only one, has all objects for itself.
struct Alone;

/// For any placement.
pub(super) fn make(_input: &Input) -> Result<Option<Box<dyn Treatment>>, Error> {
    Ok(Some(Box::new(Alone)))
}

impl Treatment for Alone {
    fn title(&self) -> &'static str {
        "treatment alone (one thread owns an instance)"
    }

    fn takes_up(&self) -> bool {
        true
    }

    fn burst(&self, burst: &Burst) -> String {
        burst::bursts(burst)
    }
}

/// C source of a program for one worker; see [`codegen::emit`].
///
/// # Errors
/// Those of [`codegen::emit`].
pub fn emit(program: &Program, checked: &Checked, file: &str) -> Result<String, Error> {
    codegen::emit(program, checked, &Sharing::default(), file)
}
