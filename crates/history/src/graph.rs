//! The control-flow graph of what executions reach: blocks, postdominators, control dependence, cycles.
//!
//! Postdominators after Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001), figure 3, on the reversed
//! graph; control dependence after Ferrante, Ottenstein and Warren, "The Program Dependence Graph and Its Use in
//! Optimization" (1987), section 3.1.

use millrace_check::facts::{Flow, Op};

/// Steps where control can go on, by the outcomes that the proof left.
#[must_use]
pub fn successors(flow: &Flow, at: usize) -> Vec<usize> {
    let Some(step) = flow.steps.get(at) else {
        return Vec::new();
    };
    let mut next = match step.op {
        Op::Plain(_) => vec![at + 1],
        Op::Jump { target } | Op::Enter { target, .. } | Op::Leave { target } => vec![target.0],
        Op::Branch { target, .. } => {
            let arms = [
                (step.outcomes.fails, at + 1),
                (step.outcomes.holds, target.0),
            ];
            let possible = arms.into_iter().filter(|(can, _)| *can);
            possible.map(|(_, to)| to).collect()
        }
        Op::Exit => Vec::new(),
    };
    next.retain(|to| *to < flow.steps.len());
    next.dedup();
    next
}

/// A run of steps with one way in and one way out.
#[derive(Debug, Default)]
pub struct Block {
    /// first step
    pub from: usize,
    /// one past the last step
    pub to: usize,
    /// successors
    pub next: Vec<usize>,
    /// predecessors
    pub before: Vec<usize>,
}

/// The graph of a flow.
#[derive(Debug)]
pub struct Graph {
    /// the blocks that executions reach, by first step
    pub blocks: Vec<Block>,
    /// block of each step; none where no execution comes
    pub of: Vec<Option<usize>>,
    /// blocks in reverse postorder
    pub order: Vec<usize>,
    /// immediate postdominator; none: the end of the program
    pub join: Vec<Option<usize>>,
    /// blocks whose last step, a branch, decides whether this one runs
    pub deciders: Vec<Vec<usize>>,
    /// whether a block can come to itself again
    pub cyclic: Vec<bool>,
}

impl Graph {
    /// The graph of a flow.
    #[must_use]
    pub fn of(flow: &Flow) -> Self {
        let steps = flow.steps.len();
        let mut reached = vec![false; steps];
        let mut leader = vec![false; steps];
        let mut pending = vec![0];
        if let Some(first) = leader.first_mut() {
            *first = true;
        }
        while let Some(at) = pending.pop() {
            if at >= steps || std::mem::replace(&mut reached[at], true) {
                continue;
            }
            let next = successors(flow, at);
            if !matches!(flow.steps[at].op, Op::Plain(_)) {
                next.iter().for_each(|&to| leader[to] = true);
            }
            pending.extend(next);
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut of = vec![None; steps];
        for at in (0..steps).filter(|&at| reached[at]) {
            let goes_on = !leader[at] && at > 0 && reached[at - 1];
            let plain = at > 0 && matches!(flow.steps[at - 1].op, Op::Plain(_));
            match blocks.last_mut().filter(|_| goes_on && plain) {
                Some(block) => block.to = at + 1,
                None => blocks.push(Block {
                    from: at,
                    to: at + 1,
                    ..Block::default()
                }),
            }
            of[at] = Some(blocks.len() - 1);
        }
        for block in 0..blocks.len() {
            for to in successors(flow, blocks[block].to - 1) {
                if let Some(to) = of[to] {
                    blocks[block].next.push(to);
                    blocks[to].before.push(block);
                }
            }
        }
        let n = blocks.len();
        let order = postorder(n, (n > 0).then_some(0), &|b| &blocks[b].next);
        let mut graph = Graph {
            blocks,
            of,
            order: order.into_iter().rev().collect(),
            join: vec![None; n],
            deciders: vec![Vec::new(); n],
            cyclic: vec![false; n],
        };
        graph.postdominators();
        graph.decide();
        graph.cycles();
        graph
    }

    /// The blocks on ways from a block to its postdominator `join`, without both.
    #[must_use]
    pub fn between(&self, block: usize, join: usize) -> Vec<usize> {
        let mut seen = vec![false; self.blocks.len()];
        let mut pending = self.blocks[block].next.clone();
        while let Some(b) = pending.pop() {
            if b != join && b != block && !std::mem::replace(&mut seen[b], true) {
                pending.extend(&self.blocks[b].next);
            }
        }
        (0..seen.len()).filter(|&b| seen[b]).collect()
    }

    /// The successor of a block from which its postdominator `join` is the fewest blocks away.
    #[must_use]
    pub fn nearest(&self, block: usize, join: usize) -> usize {
        let mut away = vec![usize::MAX; self.blocks.len()];
        away[join] = 0;
        let mut pending = std::collections::VecDeque::from([join]);
        while let Some(b) = pending.pop_front() {
            for &p in &self.blocks[b].before {
                if away[p] == usize::MAX {
                    away[p] = away[b] + 1;
                    pending.push_back(p);
                }
            }
        }
        let next = self.blocks[block].next.iter().copied();
        next.min_by_key(|&b| away[b]).unwrap_or(join)
    }

    fn postdominators(&mut self) {
        let n = self.blocks.len();
        // The end is block n; a block that never comes to it (none is proved to be there) counts as leading to it.
        let mut ends: Vec<usize> = (0..n).filter(|&b| self.blocks[b].next.is_empty()).collect();
        let order = loop {
            let ends_now = ends.clone();
            let back = |b: usize| {
                if b == n {
                    &ends_now
                } else {
                    &self.blocks[b].before
                }
            };
            let order = postorder(n + 1, Some(n), &back);
            let mut seen = vec![false; n + 1];
            order.iter().for_each(|&b| seen[b] = true);
            match (0..n).rev().find(|&b| !seen[b]) {
                Some(b) => ends.push(b),
                None => break order,
            }
        };
        let mut rank = vec![0; n + 1];
        (order.iter().enumerate()).for_each(|(at, &b)| rank[b] = at);
        let mut up: Vec<Option<usize>> = vec![None; n + 1];
        up[n] = Some(n);
        let is_end = {
            let mut is_end = vec![false; n];
            ends.iter().for_each(|&b| is_end[b] = true);
            is_end
        };
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &b in order.iter().rev().filter(|&&b| b != n) {
                let mut new: Option<usize> = None;
                let ways = self.blocks[b].next.iter().copied();
                for s in ways.chain(is_end[b].then_some(n)) {
                    if up[s].is_none() {
                        continue;
                    }
                    new = Some(match new {
                        None => s,
                        Some(other) => {
                            let (mut x, mut y) = (s, other);
                            while x != y {
                                while rank[x] < rank[y] {
                                    x = up[x].unwrap_or(n);
                                }
                                while rank[y] < rank[x] {
                                    y = up[y].unwrap_or(n);
                                }
                            }
                            x
                        }
                    });
                }
                if new.is_some() && up[b] != new {
                    up[b] = new;
                    changed = true;
                }
            }
        }
        for (join, up) in self.join.iter_mut().zip(&up) {
            *join = up.filter(|&j| j != n);
        }
    }

    fn decide(&mut self) {
        for b in 0..self.blocks.len() {
            if self.blocks[b].next.len() < 2 {
                continue;
            }
            for to in self.blocks[b].next.clone() {
                let mut at = Some(to);
                while at != self.join[b] {
                    let Some(here) = at else { break };
                    if !self.deciders[here].contains(&b) {
                        self.deciders[here].push(b);
                    }
                    at = self.join[here];
                }
            }
        }
    }

    /// Strongly connected components after Kosaraju and Sharir.
    fn cycles(&mut self) {
        let n = self.blocks.len();
        let mut placed = vec![false; n];
        for &root in &self.order {
            if placed[root] {
                continue;
            }
            let (mut pending, mut members) = (vec![root], Vec::new());
            while let Some(b) = pending.pop() {
                if !std::mem::replace(&mut placed[b], true) {
                    members.push(b);
                    pending.extend(&self.blocks[b].before);
                }
            }
            let own = self.blocks[root].next.contains(&root);
            let cyclic = members.len() > 1 || own;
            members.iter().for_each(|&b| self.cyclic[b] = cyclic);
        }
    }

    /// The steps that can come after these, themselves included; control does not go on behind those that `stop`.
    #[must_use]
    pub fn reach(flow: &Flow, from: &[usize], stop: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let mut seen = vec![false; flow.steps.len()];
        let mut pending = from.to_vec();
        while let Some(at) = pending.pop() {
            if at < seen.len() && !std::mem::replace(&mut seen[at], true) && !stop(at) {
                pending.extend(successors(flow, at));
            }
        }
        seen
    }
}

fn postorder<'a>(
    n: usize,
    root: Option<usize>,
    next: &dyn Fn(usize) -> &'a Vec<usize>,
) -> Vec<usize> {
    let (mut seen, mut out) = (vec![false; n], Vec::new());
    let Some(root) = root else { return out };
    seen[root] = true;
    let mut walk = vec![(root, 0)];
    while let Some((b, at)) = walk.pop() {
        match next(b).get(at) {
            Some(&to) => {
                walk.push((b, at + 1));
                if !std::mem::replace(&mut seen[to], true) {
                    walk.push((to, 0));
                }
            }
            None => out.push(b),
        }
    }
    out
}
