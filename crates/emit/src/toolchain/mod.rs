//! clang, which turns NFs into BPF objects and emitted C into shared objects.

mod find;
mod module;
mod nf;

pub use find::{Toolchain, find};
pub use module::{ModuleOptions, compile_module};
pub use nf::{CompiledNf, FLAGS as NF_FLAGS, compile_nf};

use std::path::Path;
use std::process::{Command, Output};

use crate::error::Error;

/// Runs a compiler; its diagnostics come back whole, as text.
fn run(command: &mut Command, about: &Path) -> Result<String, Error> {
    let Output { status, stderr, .. } =
        command.output().map_err(Error::io(command.get_program()))?;
    let diagnostics = String::from_utf8_lossy(&stderr).into_owned();
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
