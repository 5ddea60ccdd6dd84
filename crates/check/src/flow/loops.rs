//! Natural loops: dominators after Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm"
//! (2001), figure 3; a loop is what reaches an edge back to a head that dominates it.

use super::graph::Blocks;

/// Index of a loop.
pub type LoopId = usize;

/// One loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// the block where it is entered
    pub head: usize,
    /// blocks, sorted
    pub body: Vec<usize>,
    /// blocks that go back to the head
    pub latches: Vec<usize>,
}

/// All loops of a flow.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// the loops, outer before inner
    pub all: Vec<Loop>,
    /// heads of cycles that are not natural loops (they have a second way in)
    pub irregular: Vec<usize>,
}

impl Loops {
    /// Finds the loops.
    #[must_use]
    pub fn of(blocks: &Blocks) -> Self {
        let dominator = dominators(blocks);
        let rank = |b: usize| blocks.rank[b].unwrap_or(usize::MAX);
        let dominates = |a: usize, mut b: usize| {
            while rank(b) > rank(a) {
                b = dominator[b];
            }
            a == b
        };
        let mut loops = Loops::default();
        for &b in &blocks.order {
            for &to in &blocks.next[b] {
                if rank(to) > rank(b) {
                    continue;
                }
                if !dominates(to, b) {
                    loops.irregular.push(to);
                    continue;
                }
                match loops.all.iter_mut().find(|l| l.head == to) {
                    Some(l) => l.latches.push(b),
                    None => loops.all.push(Loop {
                        head: to,
                        body: Vec::new(),
                        latches: vec![b],
                    }),
                }
            }
        }
        for l in &mut loops.all {
            let mut body = vec![l.head];
            let mut todo = l.latches.clone();
            let mut inside = std::collections::HashSet::from([l.head]);
            while let Some(b) = todo.pop() {
                if inside.insert(b) {
                    body.push(b);
                    todo.extend(
                        blocks.before[b]
                            .iter()
                            .copied()
                            .filter(|&p| blocks.rank[p].is_some()),
                    );
                }
            }
            body.sort_unstable();
            l.body = body;
        }
        loops.all.sort_by_key(|l| std::cmp::Reverse(l.body.len()));
        loops
    }

    /// The loop that begins at this block.
    #[must_use]
    pub fn at_head(&self, block: usize) -> Option<LoopId> {
        self.all.iter().position(|l| l.head == block)
    }

    /// Whether a block is in a loop.
    #[must_use]
    pub fn contains(&self, id: LoopId, block: usize) -> bool {
        self.all
            .get(id)
            .is_some_and(|l| l.body.binary_search(&block).is_ok())
    }
}

fn dominators(blocks: &Blocks) -> Vec<usize> {
    let n = blocks.starts.len();
    let unset = usize::MAX;
    let mut idom = vec![unset; n];
    if n == 0 {
        return idom;
    }
    idom[0] = 0;
    let rank = |b: usize| blocks.rank[b].unwrap_or(usize::MAX);
    loop {
        let mut changed = false;
        for &b in blocks.order.iter().skip(1) {
            let mut new = unset;
            for &p in &blocks.before[b] {
                if idom[p] == unset {
                    continue;
                }
                if new == unset {
                    new = p;
                    continue;
                }
                let (mut x, mut y) = (p, new);
                while x != y {
                    while rank(x) > rank(y) {
                        x = idom[x];
                    }
                    while rank(y) > rank(x) {
                        y = idom[y];
                    }
                }
                new = x;
            }
            if idom[b] != new {
                idom[b] = new;
                changed = true;
            }
        }
        if !changed {
            return idom;
        }
    }
}
