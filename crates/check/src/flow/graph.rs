//! The control-flow graph of a flow: successors, basic blocks, joins.

use crate::facts::{Flow, Op};

/// Where a step can go on.
#[must_use]
pub fn successors(flow: &Flow, at: usize) -> [Option<usize>; 2] {
    let n = flow.steps.len();
    let inside = |t: usize| (t < n).then_some(t);
    match flow.steps.get(at).map(|s| s.op) {
        Some(Op::Plain(_)) => [inside(at + 1), None],
        Some(Op::Jump { target } | Op::Enter { target, .. } | Op::Leave { target }) => {
            [inside(target.0), None]
        }
        Some(Op::Branch { target, .. }) => [inside(at + 1), inside(target.0)],
        Some(Op::Exit) | None => [None, None],
    }
}

/// Basic blocks, in the steps' order.
#[derive(Debug)]
pub struct Blocks {
    /// the first step of each block
    pub starts: Vec<usize>,
    /// the block of each step
    pub of: Vec<usize>,
    /// successors of each block
    pub next: Vec<Vec<usize>>,
    /// predecessors of each block
    pub before: Vec<Vec<usize>>,
    /// blocks that can be reached from the first, in reverse postorder
    pub order: Vec<usize>,
    /// position in `order`; none if it cannot be reached
    pub rank: Vec<Option<usize>>,
}

impl Blocks {
    /// The steps of a block.
    #[must_use]
    pub fn steps(&self, block: usize) -> std::ops::Range<usize> {
        let start = self.starts.get(block).copied().unwrap_or(0);
        let end = self.starts.get(block + 1).copied().unwrap_or(self.of.len());
        start..end
    }

    /// Splits a flow into blocks.
    #[must_use]
    pub fn of(flow: &Flow) -> Self {
        let n = flow.steps.len();
        let mut leader = vec![false; n];
        if let Some(first) = leader.first_mut() {
            *first = true;
        }
        for at in 0..n {
            if matches!(flow.steps[at].op, Op::Plain(_)) {
                continue;
            }
            for to in successors(flow, at).into_iter().flatten() {
                leader[to] = true;
            }
            if at + 1 < n {
                leader[at + 1] = true;
            }
        }
        let starts: Vec<usize> = (0..n).filter(|&i| leader[i]).collect();
        let mut of = vec![0; n];
        for (b, &s) in starts.iter().enumerate() {
            let end = starts.get(b + 1).copied().unwrap_or(n);
            of[s..end].fill(b);
        }
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); starts.len()];
        let mut before = vec![Vec::new(); starts.len()];
        for (b, out) in next.iter_mut().enumerate() {
            let last = starts.get(b + 1).copied().unwrap_or(n) - 1;
            for to in successors(flow, last).into_iter().flatten() {
                out.push(of[to]);
                before[of[to]].push(b);
            }
        }
        let mut blocks = Blocks {
            starts,
            of,
            next,
            before,
            order: Vec::new(),
            rank: Vec::new(),
        };
        blocks.number();
        blocks
    }

    fn number(&mut self) {
        let n = self.starts.len();
        let mut seen = vec![false; n];
        let mut walk = vec![(0, 0)];
        if n == 0 {
            return;
        }
        seen[0] = true;
        while let Some((b, i)) = walk.pop() {
            match self.next[b].get(i) {
                Some(&to) => {
                    walk.push((b, i + 1));
                    if !seen[to] {
                        seen[to] = true;
                        walk.push((to, 0));
                    }
                }
                None => self.order.push(b),
            }
        }
        self.order.reverse();
        self.rank = vec![None; n];
        for (i, &b) in self.order.iter().enumerate() {
            self.rank[b] = Some(i);
        }
    }
}
