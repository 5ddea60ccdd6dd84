//! clang, which turns NFs into BPF objects and emitted C into shared objects.

mod bounded;
mod find;
mod link;
mod module;
mod nf;

pub use find::{Toolchain, find};
pub use module::{ModuleOptions, compile_module, compile_module_within};
pub use nf::{CompiledNf, FLAGS as NF_FLAGS, compile_nf, compile_nf_within};

use std::path::Path;
use std::process::{Command, ExitStatus};

use millrace_check::Budget;

use crate::error::Error;
use bounded::Ended;

/// Runs a compiler for all that is left of a budget; its diagnostics come back whole, as text.
fn run(command: &Command, about: &Path, budget: &Budget) -> Result<String, Error> {
    match bounded::run(command, budget, 1.0)? {
        Ended::Itself(status, said) => judged(status, said, about),
        Ended::Spent(spent) => Err(bounded::spent(about, spent)),
    }
}

/// What became of a compiler that ended by itself.
fn judged(status: ExitStatus, diagnostics: String, about: &Path) -> Result<String, Error> {
    if status.success() {
        return Ok(diagnostics);
    }
    let diagnostics = if diagnostics.is_empty() {
        format!("clang ended with {status}")
    } else {
        diagnostics
    };
    Err(Error::Compile {
        file: about.to_owned(),
        diagnostics,
    })
}
