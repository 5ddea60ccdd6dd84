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
    /// the loop that begins at each block
    heads: Vec<Option<LoopId>>,
    /// heads of cycles that are not natural loops (they have a second way in), or that there are too
    /// many of
    irregular: Vec<bool>,
}

/// Most work for dominators and for bodies, as a multiple of the blocks; past it the cycles left are
/// irregular, which is sound: they are followed round by round.
const EFFORT: usize = 64;

impl Loops {
    /// Finds the loops.
    #[must_use]
    pub fn of(blocks: &Blocks) -> Self {
        let dominator = dominators(blocks);
        let mut effort = EFFORT * (blocks.starts.len() + 64);
        let rank = |b: usize| blocks.rank[b].unwrap_or(usize::MAX);
        let mut dominates = |a: usize, mut b: usize| {
            let Some(dominator) = &dominator else {
                return false;
            };
            while rank(b) > rank(a) && effort > 0 {
                b = dominator[b];
                effort -= 1;
            }
            a == b
        };
        let n = blocks.starts.len();
        let mut loops = Loops {
            all: Vec::new(),
            heads: vec![None; n],
            irregular: vec![false; n],
        };
        for &b in &blocks.order {
            for &to in &blocks.next[b] {
                if rank(to) > rank(b) {
                    continue;
                }
                if !dominates(to, b) {
                    loops.irregular[to] = true;
                    continue;
                }
                match loops.heads[to].and_then(|l| loops.all.get_mut(l)) {
                    Some(l) => l.latches.push(b),
                    None => {
                        loops.heads[to] = Some(loops.all.len());
                        loops.all.push(Loop {
                            head: to,
                            body: Vec::new(),
                            latches: vec![b],
                        });
                    }
                }
            }
        }
        let mut room = EFFORT * (n + 64);
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
            room = room.saturating_sub(body.len());
            l.body = body;
            if room == 0 {
                break;
            }
        }
        // Loops without a body are those that there was no room for.
        for l in loops.all.iter().filter(|l| l.body.is_empty()) {
            loops.irregular[l.head] = true;
        }
        loops.all.retain(|l| !l.body.is_empty());
        loops.all.sort_by_key(|l| std::cmp::Reverse(l.body.len()));
        loops.heads.fill(None);
        for (i, l) in loops.all.iter().enumerate() {
            loops.heads[l.head] = Some(i);
        }
        loops
    }

    /// The loop that begins at this block.
    #[must_use]
    pub fn at_head(&self, block: usize) -> Option<LoopId> {
        self.heads.get(block).copied().flatten()
    }

    /// Whether a cycle that is not a loop goes back to this block.
    #[must_use]
    pub fn irregular(&self, block: usize) -> bool {
        self.irregular.get(block).copied().unwrap_or(false)
    }

    /// Whether a block is in a loop.
    #[must_use]
    pub fn contains(&self, id: LoopId, block: usize) -> bool {
        self.all
            .get(id)
            .is_some_and(|l| l.body.binary_search(&block).is_ok())
    }
}

/// The immediate dominator of each block; none if it takes too long to find them.
fn dominators(blocks: &Blocks) -> Option<Vec<usize>> {
    let mut effort = EFFORT * (blocks.starts.len() + 64);
    let n = blocks.starts.len();
    let unset = usize::MAX;
    let mut idom = vec![unset; n];
    if n == 0 {
        return Some(idom);
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
                    effort = effort.checked_sub(1)?;
                    while rank(x) > rank(y) {
                        effort = effort.checked_sub(1)?;
                        x = idom[x];
                    }
                    while rank(y) > rank(x) {
                        effort = effort.checked_sub(1)?;
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
            return Some(idom);
        }
    }
}
