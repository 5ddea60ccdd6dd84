//! The part of a fingerprint that is a function's code: equal on two machines where it does and holds the same, wherever its source lies.

use std::path::Path;

use millrace_object::program::{Dialect, Entry, Param, StateObject};
use millrace_object::{Insn, Program, load_file_with};
use serde::Serialize;

/// A program without what a compiler and an author call things: where its source lies, its lines, names of functions and sections.
#[derive(Serialize)]
struct Identity<'a> {
    dialect: Dialect,
    functions: Vec<&'a [Insn]>,
    entries: &'a [Entry],
    objects: &'a [StateObject],
    rules: Vec<Option<&'a [u8]>>,
    ports: &'a [String],
    params: &'a [Param],
    reasons: &'a [String],
}

/// Of an object file. Settings and capacities that a machine was given are not in it: a setting is changed on one machine after the other,
/// and a larger machine has room for more.
///
/// # Errors
/// It is no object file, or cannot be read.
pub(super) fn identity(object: &Path) -> Result<Vec<u8>, String> {
    // Capacities that the author left to whoever loads it are the machine's.
    let program = load_file_with(object, &[("*".to_owned(), 1)]).map_err(|e| e.to_string())?;
    of(&program).map_err(|e| format!("{}: {e}", object.display()))
}

fn of(program: &Program) -> Result<Vec<u8>, serde_json::Error> {
    let identity = Identity {
        dialect: program.dialect,
        functions: program.functions.iter().map(|f| &*f.insns).collect(),
        entries: &program.entries,
        objects: &program.objects,
        rules: program.objects.iter().map(|o| o.rules.as_deref()).collect(),
        ports: &program.ports,
        params: &program.params,
        reasons: &program.reasons,
    };
    serde_json::to_vec(&identity)
}
