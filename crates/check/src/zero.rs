//! Stack bytes that a function reads before it writes them: they are zeros.
//!
//! The kernel lets privileged programs read such bytes since Linux 6.3, whatever is there (commit 6715df8d5d24,
//! "bpf: Allow reads from uninit stack"), so programs pass keys to helpers whose padding nobody wrote. Here they
//! have one value everywhere: a frame begins as zeros. The stores of those zeros that somebody may read become
//! steps of the flow, at the frame's start, and the flow is explored again. So every later stage sees ordinary stores of
//! ordinary bytes, which `rules/stack` has shown to be written before they are read, and a program that reads nothing
//! before it writes it has none of them. Nothing here is trusted: what is not stored is refused.

use std::collections::{BTreeMap, BTreeSet};

use millrace_object::insn::{Insn, Operand, Reg, STACK, Size};

use crate::facts::{Flow, FrameId, Op, Step, StepId};

/// Lays out stores of zeros at the start of these frames: by frame, one bit a byte, lowest first. False if all of them
/// are there already.
pub fn begin(flow: &mut Flow, bytes: &BTreeMap<FrameId, [u64; 8]>) -> bool {
    let mut any = false;
    for (&frame, bits) in bytes {
        let Some(f) = flow.frames.get_mut(frame.0) else {
            continue;
        };
        let is_new = |&at: &i64| {
            let from = (at - STACK) as i32;
            set(bits, at) && !f.zeroed.iter().any(|&(a, b)| (a..b).contains(&from))
        };
        let new: BTreeSet<i64> = (0..STACK).filter(is_new).collect();
        if new.is_empty() {
            continue;
        }
        any = true;
        f.zeroed.extend(runs(&new));
        f.zeroed.sort_unstable();
        let stores = stores(&new);
        if frame == FrameId(0) {
            insert(flow, StepId(0), frame, &stores);
            continue;
        }
        let starts: BTreeSet<StepId> = (flow.steps.iter())
            .filter_map(|s| match s.op {
                Op::Enter { frame: f, target } if f == frame => Some(target),
                _ => None,
            })
            .collect();
        // From the last, so that the others stay where they are.
        for at in starts.into_iter().rev() {
            insert(flow, at, frame, &stores);
        }
    }
    any
}

fn set(bits: &[u64; 8], at: i64) -> bool {
    bits[(at / 64 % 8) as usize] >> (at % 64) & 1 == 1
}

/// The bytes that are meant, from `r10`.
fn runs(bytes: &BTreeSet<i64>) -> Vec<(i32, i32)> {
    let mut all: Vec<(i32, i32)> = Vec::new();
    for at in bytes {
        let from = (at - STACK) as i32;
        match all.last_mut() {
            Some(last) if last.1 == from => last.1 = from + 1,
            _ => all.push((from, from + 1)),
        }
    }
    all
}

/// Aligned stores, each as large as it can be.
fn stores(bytes: &BTreeSet<i64>) -> Vec<Op> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < STACK {
        let fits = |size: &Size| {
            let len = i64::from(size.bytes());
            at % len == 0 && (at..at + len).all(|b| bytes.contains(&b))
        };
        let Some(size) = [Size::B8, Size::B4, Size::B2, Size::B1]
            .into_iter()
            .find(fits)
        else {
            at += 1;
            continue;
        };
        all.push(Op::Plain(Insn::Store {
            size,
            base: Reg(10),
            offset: (at - STACK) as i16,
            src: Operand::Imm(0),
        }));
        at += i64::from(size.bytes());
    }
    all
}

/// Puts steps before one of a frame: who enters the frame there, or begins there, meets them; who jumps there goes on
/// behind them, as in a loop that the function begins with.
fn insert(flow: &mut Flow, at: StepId, frame: FrameId, ops: &[Op]) {
    let count = ops.len();
    for step in &mut flow.steps {
        match &mut step.op {
            Op::Enter { target, .. } if *target == at => {}
            Op::Jump { target }
            | Op::Branch { target, .. }
            | Op::Enter { target, .. }
            | Op::Leave { target }
                if *target >= at =>
            {
                target.0 += count;
            }
            _ => {}
        }
    }
    let (pc, line) = (flow.steps.get(at.0)).map_or((0, None), |s| (s.pc, s.line.clone()));
    let steps = ops
        .iter()
        .map(|&op| Step::blank(frame, pc, op, line.clone()));
    flow.steps.splice(at.0..at.0, steps);
}
