//! Constants that a source returns as verdicts and that are none: safe, and hardly what the author meant.

use std::collections::BTreeSet;
use std::fmt::Write;

use millrace_object::insn::{AluOp, Insn, Operand, Reg, Width};
use millrace_object::program::{Dialect, Function, Program, Role};

/// Verdicts of the kernel's, `XDP_ABORTED` to `XDP_REDIRECT`.
const XDP: std::ops::RangeInclusive<u32> = 0..=4;

/// Warnings as clang writes them, one for each line that returns such a constant.
pub(crate) fn warnings(program: &Program) -> String {
    let packets = |role: Role| matches!(role, Role::Xdp | Role::OnPacket);
    let entries = program.entries.iter().filter(|e| packets(e.role));
    let functions = entries.filter_map(|e| program.functions.get(e.function.0));
    let mut said = BTreeSet::new();
    let mut all = String::new();
    for function in functions {
        for (at, value) in constants(function) {
            let Some(becomes) = wrong(program, value) else {
                continue;
            };
            let Some(line) = function.lines.get(at).and_then(Option::as_ref) else {
                continue;
            };
            if said.insert((line.line, value)) {
                let _ = writeln!(
                    all,
                    "{}:{}: warning: {} is returned here, which is no verdict: {becomes}\n  {}\n  help: {}",
                    line.file,
                    line.line,
                    value as i32,
                    line.text,
                    help(program.dialect),
                );
            }
        }
    }
    all
}

/// What becomes of a packet by a number that is no verdict.
fn wrong(program: &Program, value: u32) -> Option<String> {
    if program.dialect == Dialect::Xdp {
        return (!XDP.contains(&value)).then(|| "the packet is aborted".to_owned());
    }
    let (kind, argument) = (value >> 24, value & 0xff_ffff);
    match (kind, argument) {
        (1 | 4, _) | (0 | 2 | 3, 0) => None,
        (0, reason) => {
            let name = program.reasons.get(reason as usize);
            let name = name.map_or_else(|| format!("reason_{reason}"), Clone::clone);
            Some(format!("the packet is dropped and counted as `{name}`"))
        }
        (2 | 3, _) => Some("FLOOD and CONSUME have no number beside them".to_owned()),
        _ => Some("the packet is aborted".to_owned()),
    }
}

fn help(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Xdp => "return XDP_PASS, XDP_DROP, XDP_TX, XDP_REDIRECT or XDP_ABORTED",
        Dialect::Handlers => {
            "return FORWARD(port), FLOOD, CONSUME, PASS, DROP or DROP_BECAUSE(reason)"
        }
    }
}

/// The constants that a function may return: where each is written to `r0`. The reason of a DROP_BECAUSE is none: its
/// name stands in the instruction until the object is loaded.
fn constants(function: &Function) -> Vec<(usize, u32)> {
    let constant = |insn: &Insn| match *insn {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32 | Width::W64,
            dst: Reg(0),
            src: Operand::Imm(value),
        } => Some(value as u32),
        _ => None,
    };
    let insns = function.insns.iter().enumerate();
    let set = insns.filter_map(|(at, insn)| Some((at, constant(insn)?)));
    set.filter(|(at, _)| returns(function, at + 1)).collect()
}

/// Whether some way from an instruction leads to the end and leaves `r0` as it is.
fn returns(function: &Function, from: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut todo = vec![from];
    while let Some(at) = todo.pop() {
        if !seen.insert(at) {
            continue;
        }
        match function.insns.get(at) {
            Some(Insn::Exit) => return true,
            Some(Insn::Jump { target }) => todo.push(*target),
            Some(Insn::Branch { target, .. }) => todo.extend([*target, at + 1]),
            Some(Insn::CallLocal { .. }) | None => {}
            Some(insn) if millrace_check::facts::written(insn) == Some(Reg(0)) => {}
            Some(_) => todo.push(at + 1),
        }
    }
    false
}
