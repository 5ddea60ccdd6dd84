//! The flow's control-flow graph: successors, joins, loops.

use crate::explore::Shape;
use crate::facts::{Flow, Op, StepId};

/// Where a step can go on.
#[must_use]
pub fn successors(flow: &Flow, at: usize) -> [Option<usize>; 2] {
    match flow.steps.get(at).map(|s| s.op) {
        Some(Op::Plain(_)) => [Some(at + 1), None],
        Some(Op::Jump { target } | Op::Enter { target, .. } | Op::Leave { target }) => {
            [Some(target.0), None]
        }
        Some(Op::Branch { target, .. }) => [Some(at + 1), Some(target.0)],
        Some(Op::Exit) | None => [None, None],
    }
}

/// Finds joins and loop heads: targets of edges that go back on a depth-first walk.
#[must_use]
pub fn shape(flow: &Flow) -> Shape {
    let n = flow.steps.len();
    let mut ways = vec![0u32; n];
    let mut heads = vec![false; n];
    // 0 unseen, 1 on the walk's path, 2 done
    let mut mark = vec![0u8; n];
    let mut walk: Vec<(usize, usize)> = vec![(0, 0)];
    if let Some(m) = mark.first_mut() {
        *m = 1;
    }
    while let Some((at, next)) = walk.pop() {
        let Some(succ) = successors(flow, at).get(next).copied() else {
            mark[at] = 2;
            continue;
        };
        walk.push((at, next + 1));
        let Some(to) = succ.filter(|&t| t < n) else {
            continue;
        };
        ways[to] += 1;
        match mark[to] {
            0 => {
                mark[to] = 1;
                walk.push((to, 0));
            }
            1 => heads[to] = true,
            _ => {}
        }
    }
    let _ = StepId(0);
    Shape {
        joins: ways.iter().map(|&w| w > 1).collect(),
        heads,
    }
}
