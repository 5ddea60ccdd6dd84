//! Random programs, and whether what the checker admits does the same in the reference interpreter and
//! in the emitted code under sanitizers.

pub mod batch;
mod callee;
pub mod generate;
pub mod interpreted;
pub mod lean;
pub mod mutate;
pub mod objects;

use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, Entry, Function, FunctionId, Program, Role};

pub use objects::TRACE;

/// How many functions come before the entries: those that they may call, or have called back.
pub const CALLEES: usize = 10;

/// A program of these entries; entry `i` is function `CALLEES + i`.
#[must_use]
pub fn program(bodies: &[Vec<Insn>]) -> Program {
    let callees = callee::all();
    let function = |(i, insns): (usize, &Vec<Insn>)| Function {
        name: format!("f{i}"),
        section: "xdp".into(),
        insns: insns.clone(),
        slots: (0..insns.len() as u32).collect(),
        lines: vec![None; insns.len()],
    };
    Program {
        name: "generated".into(),
        dialect: Dialect::Xdp,
        functions: callees
            .iter()
            .chain(bodies)
            .enumerate()
            .map(function)
            .collect(),
        entries: (0..bodies.len())
            .map(|f| Entry {
                role: Role::Xdp,
                function: FunctionId(CALLEES + f),
            })
            .collect(),
        objects: objects::all(),
        ports: Vec::new(),
        params: Vec::new(),
        reasons: vec!["dropped".into()],
        license: String::new(),
    }
}

/// A program as text, an instruction a line.
#[must_use]
pub fn text(insns: &[Insn]) -> String {
    let line = |(i, insn): (usize, &Insn)| format!("{i:4}: {insn}");
    insns
        .iter()
        .enumerate()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}
