//! Loops that `may_goto` bounds: each counts down the budget of its function's call, and jumps when that is
//! used up. What the budget is then need not be known; that every round counts it down is seen from the flow.
//!
//! A loop is bounded if nothing in it renews the budget of some frame (no call of that function begins in
//! it), and every way from its head back to its head counts that budget down. No other instruction writes it, so
//! the loop comes round at most [`ROUNDS`] times.
//!
//! Rounds of loops within loops that count down the same budget add up, where those of others multiply. Every
//! time that one of n such loops comes round, the budget is smaller by one at least than when it last did, so
//! together they come round at most n * ROUNDS times. Between two such moments an execution enters each
//! of them at most once: to enter it again it would have to come round one that contains it.

use std::collections::BTreeSet;

use millrace_object::insn::{AluOp, BUDGET, Insn, ROUNDS};

use super::graph::{Graph, NodeId};
use super::plan::Plan;
use crate::facts::{Flow, FrameId, Op};
use crate::flow::graph::Blocks;
use crate::flow::loops::{Loop, LoopId, Loops};

/// For each loop the frame whose budget bounds it, if there is one.
#[must_use]
pub fn of(flow: &Flow, blocks: &Blocks, loops: &Loops) -> Vec<Option<FrameId>> {
    let mut down: Vec<Option<FrameId>> = vec![None; blocks.starts.len()];
    let mut renewed = down.clone();
    let mut any = false;
    for (at, step) in flow.steps.iter().enumerate() {
        let Op::Plain(Insn::Alu {
            op, dst: BUDGET, ..
        }) = step.op
        else {
            continue;
        };
        let writes = match op {
            AluOp::Sub => &mut down,
            _ => &mut renewed,
        };
        if let Some(frame) = blocks.of.get(at).and_then(|&b| writes.get_mut(b)) {
            *frame = Some(step.frame);
            any = true;
        }
    }
    let all = loops.all.iter();
    all.map(|l| any.then(|| bounding(l, blocks, &down, &renewed)).flatten())
        .collect()
}

fn bounding(
    l: &Loop,
    blocks: &Blocks,
    down: &[Option<FrameId>],
    renewed: &[Option<FrameId>],
) -> Option<FrameId> {
    let frames = |of: &[Option<FrameId>]| -> BTreeSet<FrameId> {
        l.body.iter().filter_map(|&b| of.get(b).copied()?).collect()
    };
    let renewed = frames(renewed);
    let mut counted = frames(down).into_iter().filter(|f| !renewed.contains(f));
    counted.find(|&frame| {
        // Blocks that can be reached from the head without counting.
        let counts = |b: usize| down.get(b).copied().flatten() == Some(frame);
        let mut seen = BTreeSet::new();
        let mut todo = vec![l.head];
        while let Some(b) = todo.pop() {
            if counts(b) || l.body.binary_search(&b).is_err() || !seen.insert(b) {
                continue;
            }
            let next = blocks.next.get(b).into_iter().flatten().copied();
            for to in next {
                if to == l.head {
                    return false;
                }
                todo.push(to);
            }
        }
        true
    })
}

/// The most rounds that one stay in a component makes, if one budget bounds all its loops; `outermost` is the
/// loop that contains it.
#[must_use]
pub fn rounds(
    graph: &Graph,
    plan: &Plan<'_>,
    component: &[NodeId],
    outermost: LoopId,
) -> Option<u64> {
    let frame = plan.budgeted(outermost)?;
    let within = plan.loops.all.get(outermost)?;
    let mut loops = BTreeSet::new();
    for &n in component {
        let block = plan.blocks.of.get(graph.node(n)?.at.0)?;
        // Every loop around the node that is within the outermost one.
        for (l, of) in plan.loops.all.iter().enumerate() {
            if plan.loops.contains(l, *block) && within.body.binary_search(&of.head).is_ok() {
                loops.insert(l);
            }
        }
    }
    if loops.iter().any(|&l| plan.budgeted(l) != Some(frame)) {
        return None;
    }
    let n = loops.len() as u64;
    let round = n.saturating_mul(ROUNDS as u64).saturating_add(1);
    Some(round.saturating_mul(n.saturating_add(1)))
}
