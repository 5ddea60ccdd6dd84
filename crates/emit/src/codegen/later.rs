//! Passes of a linked program that run ahead for elements behind the first: what their first keyed operation will look up is fetched
//! before the packet gets there.
//!
//! The prefetch pass of a program ends at its first keyed operation, and in a linked one that is the first element's. Elements by
//! themselves each have a prefetch pass; linked without one, each packet would wait for the state of the second element. So the
//! program is written once more with the first element replaced by its answer "forward", is proved like any other, and its prefetch
//! pass runs over the burst, too.
//!
//! It is right where the first element leaves packets as they are, and only such elements are passed; of a packet that
//! this one drops it was for nothing. It reads packets and writes its own stack alone, by a proof of its own, which supposes nothing that
//! the first element would have said of the packet.
//!
//! Where one thread runs the program, it goes on from what this pass found when it comes to the second element (`Later::seconds`): what
//! that read and checked ahead is neither read nor checked again.
//! Nothing in between writes what the pass read (see [`super::prefetch`]): the packet and its context do not change in the first element, which was the only
//! one before; objects that packets write it did not read.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::alters::changes;
use millrace_check::facts::{Access, Checked, Flow, FrameId, Op, Step, StepId};
use millrace_check::{Options, check};
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
    /// functions of elements to which packets come from those that were passed, and from nowhere else
    pub seconds: BTreeSet<FunctionId>,
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
    let called = |at: &usize| match handler.insns.get(*at) {
        Some(Insn::CallLocal { function }) => Some(*function),
        _ => None,
    };
    let firsts = calls_from(&handler.insns, 0);
    let mut passed = BTreeSet::new();
    for at in &firsts {
        let changes = called(at).is_none_or(|f| changes_packets(program, flow, f));
        let mut answers = (0..PORTS).map(|port| FORWARD + port);
        let forward = answers.find(|n| !changes && calls_on(&handler.insns, *at, *n));
        if forward.is_some() {
            passed.insert(*at);
        }
        // What is not passed ends its packets: there is nothing to look up ahead of it.
        if let Some(call) = insns.get_mut(*at) {
            *call = Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst: Reg(0),
                src: Operand::Imm(forward.unwrap_or(0)),
            };
        }
    }
    if passed.is_empty() {
        return None;
    }
    // Who is called behind which call, and is called once at most for a packet: connections have no cycle.
    let calls = (0..handler.insns.len()).filter(|at| called(at).is_some());
    let behind: Vec<(usize, BTreeSet<usize>)> = calls
        .map(|at| (at, calls_from(&handler.insns, at + 1)))
        .collect();
    let comes_from = |to: usize| {
        let from = behind.iter().filter(move |(_, all)| all.contains(&to));
        from.map(|(at, _)| *at)
    };
    let begins = |at: usize| comes_from(at).next().is_none();
    // What was written in the place of first calls holds for packets that have just entered alone.
    let all_begin = firsts.iter().all(|at| begins(*at));
    let second = |at: &usize| {
        all_begin && !begins(*at) && comes_from(*at).all(|from| passed.contains(&from))
    };
    let seconds = behind.iter().map(|(at, _)| *at).filter(second);
    let seconds = seconds.filter_map(|at| called(&at)).collect();
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
    Some(Later {
        program,
        checked,
        seconds,
    })
}

impl Later {
    /// The numbers of sites that lie in each function that the handler calls.
    pub fn within(&self, sites: &BTreeMap<StepId, u32>) -> BTreeMap<FunctionId, Vec<u32>> {
        let mut out: BTreeMap<FunctionId, Vec<u32>> = BTreeMap::new();
        let Some(flow) = self.checked.flows.first() else {
            return out;
        };
        for (id, site) in sites {
            let mut frame = flow.steps.get(id.0).map(|s| s.frame);
            let mut function = None;
            while let Some(at) = frame.filter(|at| *at != FrameId(0)) {
                let of = flow.frames.get(at.0);
                function = of.map(|f| f.function);
                frame = of.and_then(|f| f.caller);
            }
            if let Some(function) = function.filter(|f| self.seconds.contains(f)) {
                out.entry(function).or_default().push(*site);
            }
        }
        out
    }
}

/// The calls that are first on some path from an instruction on.
fn calls_from(insns: &[Insn], start: usize) -> BTreeSet<usize> {
    let (mut calls, mut seen, mut todo) = (BTreeSet::new(), BTreeSet::new(), vec![start]);
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

/// Whether a function, or one that it calls, may change packets or their context.
fn changes_packets(program: &Program, flow: &Flow, function: FunctionId) -> bool {
    let (mut all, mut todo) = (BTreeSet::new(), vec![function]);
    while let Some(id) = todo.pop() {
        if !all.insert(id) {
            continue;
        }
        let insns = program.functions.get(id.0).map(|f| f.insns.as_slice());
        todo.extend(
            insns
                .unwrap_or_default()
                .iter()
                .filter_map(|insn| match insn {
                    Insn::CallLocal { function } => Some(*function),
                    _ => None,
                }),
        );
    }
    flow.steps.iter().filter(|s| s.reached).any(|step| {
        let own = flow.frames.get(step.frame.0);
        own.is_some_and(|f| all.contains(&f.function))
            && (changes(step)
                || matches!(step.access, Some(Access::Context { .. })) && is_store(step))
    })
}

fn is_store(step: &Step) -> bool {
    matches!(step.op, Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }))
}
