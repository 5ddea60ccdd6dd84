//! Passes of a linked program that run ahead for elements behind the first: what their first keyed operation will look up is fetched
//! before the packet gets there.
//!
//! The prefetch pass of a program ends at its first keyed operation, and in a linked one that is the first element's. Elements by
//! themselves each have a prefetch pass; linked without one, each packet would wait for the state of the second element. So the
//! program is written once more with the first element replaced by its answer "forward", is proved like any other, and its prefetch
//! pass runs over the burst, too.
//!
//! What it finds is a hint. It is right where the first element leaves packets as they are, and only such elements are passed; of a packet that
//! this one drops it was for nothing. It takes no token over: the program computes its key when it gets there. It reads packets and writes its own stack
//! alone, by a proof of its own, which supposes nothing that the first element would have said of the packet.

use std::collections::BTreeSet;

use millrace_check::facts::{Access, Checked, Flow, Op};
use millrace_check::{Options, check};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Width};
use millrace_object::program::{FunctionId, LINKED, Program};

use super::module::takes_packets;

/// The verdict that sends a packet to port 0 (docs/dialect.md).
const FORWARD: i64 = 1 << 24;
/// Ports of an element of a row.
const PORTS: i64 = 2;
/// Most steps followed for such a proof: without it nothing is fetched.
const VISITS: u64 = 200_000;

/// A linked program without its first elements, and its proof.
pub struct Later {
    /// the program
    pub program: Program,
    /// its proof
    pub checked: Checked,
}

/// The program whose first elements are those that packets reach second, of an entry for packets with this proof; none where it was not linked, or the
/// first elements all change packets.
pub fn of(program: &Program, flow: &Flow) -> Option<Later> {
    let entry = program.entries.iter().find(|e| takes_packets(e.role))?;
    let handler = program.functions.get(entry.function.0)?;
    if handler.section != LINKED {
        return None;
    }
    let function = entry.function;
    let mut insns = handler.insns.clone();
    let mut any = false;
    for at in first_calls(&handler.insns) {
        let Some(Insn::CallLocal { function }) = handler.insns.get(at).copied() else {
            continue;
        };
        if changes_packets(program, flow, function) {
            continue;
        }
        let answers = (0..PORTS).map(|port| FORWARD + port);
        let forward = answers.into_iter().find(|n| calls_on(&handler.insns, at, *n));
        if let (Some(verdict), Some(call)) = (forward, insns.get_mut(at)) {
            any = true;
            *call = Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst: Reg(0),
                src: Operand::Imm(verdict),
            };
        }
    }
    if !any {
        return None;
    }
    let mut program = Program {
        entries: vec![entry.clone()],
        ..program.clone()
    };
    program.functions.get_mut(function.0)?.insns = insns;
    let options = Options {
        max_visits: VISITS,
        ..Options::default()
    };
    let checked = check(&program, &options).ok()?;
    Some(Later { program, checked })
}

/// The calls of the handler that are first on some way through it.
fn first_calls(insns: &[Insn]) -> BTreeSet<usize> {
    let (mut calls, mut seen, mut todo) = (BTreeSet::new(), BTreeSet::new(), vec![0]);
    while let Some(at) = todo.pop() {
        if !seen.insert(at) {
            continue;
        }
        match insns.get(at) {
            None | Some(Insn::Exit) => {}
            Some(Insn::CallLocal { .. }) => drop(calls.insert(at)),
            Some(Insn::Jump { target }) => todo.push(*target),
            Some(Insn::Branch { target, .. }) => todo.extend([*target, at + 1]),
            Some(_) => todo.push(at + 1),
        }
    }
    calls
}

/// Whether a call that answers so is followed by another one.
fn calls_on(insns: &[Insn], call: usize, answer: i64) -> bool {
    let mut at = call + 1;
    for _ in 0..insns.len() {
        at = match insns.get(at) {
            Some(Insn::CallLocal { .. }) => return true,
            Some(Insn::Jump { target }) => *target,
            Some(Insn::Branch {
                condition,
                left: Reg(0),
                right: Operand::Imm(n),
                target,
                ..
            }) => {
                let holds = match condition {
                    Condition::Eq => answer == *n,
                    Condition::Ne => answer != *n,
                    Condition::Gt => answer > *n,
                    Condition::Ge => answer >= *n,
                    Condition::Lt => answer < *n,
                    Condition::Le => answer <= *n,
                    _ => return false,
                };
                if holds { *target } else { at + 1 }
            }
            // What else is done to the answer: it is cut to 32 bits.
            Some(Insn::Alu { op: AluOp::Mov, .. }) => at + 1,
            _ => return false,
        };
    }
    false
}

/// Whether a function, or one that it calls, may change packets.
fn changes_packets(program: &Program, flow: &Flow, function: FunctionId) -> bool {
    let (mut all, mut todo) = (BTreeSet::new(), vec![function]);
    while let Some(id) = todo.pop() {
        if !all.insert(id) {
            continue;
        }
        let insns = program.functions.get(id.0).map(|f| f.insns.as_slice());
        todo.extend(insns.unwrap_or_default().iter().filter_map(|insn| match insn {
            Insn::CallLocal { function } => Some(*function),
            _ => None,
        }));
    }
    flow.steps.iter().filter(|s| s.reached).any(|step| {
        let own = flow.frames.get(step.frame.0);
        own.is_some_and(|f| all.contains(&f.function))
            && match step.op {
                Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }) => {
                    matches!(step.access, Some(Access::Packet | Access::Several))
                }
                Op::Plain(Insn::Call { helper }) => helper::by_number(helper)
                    .is_none_or(|h| h.effects.moves_packet || h.effects.writes_packet),
                _ => false,
            }
    })
}
