//! Targets that are no module of the data plane: hardware, the kernel, switches.
//!
//! A target takes a checked program and gives text files. What it cannot express it refuses with the author's line.

pub mod p4;
pub mod verilog;
pub mod xdp;

use millrace_check::Checked;
use millrace_history::circuit::Circuit;
use millrace_history::{History, Refusal};
use millrace_object::Program;
use millrace_object::program::Line;

use crate::error::Error;

/// A file of a target.
#[derive(Clone, Debug)]
pub struct File {
    /// its name, without a folder
    pub name: String,
    /// its content
    pub text: String,
}

/// What a target is made of.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// what is written
    pub program: &'a Program,
    /// what is proved
    pub checked: &'a Checked,
    /// cores that packets are sprayed over, 1 to 64
    pub cores: u16,
    /// rows that a packet carries, at least as many as cores, at most 64
    pub slots: u16,
    /// a heartbeat comes so long after the last row, ns
    pub period: u64,
}

/// A target.
pub trait Target: Sync {
    /// Its word on the command line.
    fn name(&self) -> &'static str;

    /// What it is, in a line.
    fn about(&self) -> &'static str;

    /// Its files.
    ///
    /// # Errors
    /// What cannot be expressed, with the line.
    fn files(&self, input: &Input) -> Result<Vec<File>, Error>;
}

/// All targets, each with its folder here.
pub const TARGETS: &[&dyn Target] = &[&verilog::Verilog, &xdp::Xdp, &p4::P4];

/// The circuit of a program's rows.
///
/// # Errors
/// The first thing that is no circuit, with its line.
pub fn circuit(input: &Input) -> Result<Circuit, Error> {
    let history = History::of(input.program, input.checked);
    Circuit::of(input.program, input.checked, &history).map_err(|all| refused(input, &all))
}

fn refused(input: &Input, all: &[Refusal]) -> Error {
    let first = all.first();
    let line = first.and_then(|r| r.line.as_ref());
    let what = first.map_or("there are no rows", |r| r.reason.as_str());
    unsupported(input.program, line, format!("a sequencer of it ({what})"))
}

/// What cannot be emitted, at its line, or of the whole program.
pub(crate) fn unsupported(
    program: &Program,
    line: Option<&Line>,
    what: impl Into<String>,
) -> Error {
    Error::Unsupported {
        place: line.map_or_else(
            || program.name.clone(),
            |l| format!("{}:{}", l.file, l.line),
        ),
        what: what.into(),
    }
}
