//! Treatment `alone`: one thread owns an instance. The reference for all others, and the fastest on one core.

mod burst;
mod noting;

use millrace_check::Checked;
use millrace_object::Program;
use millrace_object::program::ObjectId;

use super::{Bodies, Hooks, Input, Sharing, Treatment};
use crate::codegen::{self, Burst};
use crate::error::Error;
use noting::Noting;

/// Each worker, or the only one, has all objects for itself.
struct Alone {
    /// objects that note which of their places change
    noting: Noting,
}

/// For any placement.
pub(super) fn make(input: &Input) -> Result<Option<Box<dyn Treatment>>, Error> {
    let noting = Noting(noting::noted(input)?);
    Ok(Some(Box::new(Alone { noting })))
}

impl Treatment for Alone {
    fn title(&self) -> &'static str {
        "treatment alone (one thread owns an instance)"
    }

    fn takes_up(&self) -> bool {
        // What a body notes is noted by one from its beginning.
        self.noting.0.is_empty()
    }

    fn bodies(&self, _entry: usize) -> Bodies<'_> {
        Bodies {
            first: &self.noting,
            fallback: None,
            hot: true,
            sites: None,
        }
    }

    fn timer(&self, _timer: usize) -> &dyn Hooks {
        &self.noting
    }

    fn notes(&self, object: ObjectId) -> bool {
        self.noting.0.contains(&object)
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
