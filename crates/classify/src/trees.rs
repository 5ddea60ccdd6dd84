//! Cut trees: where a diagram would be too large.
//!
//! Rules are divided by which of the two widest words they fix to less than a 2^16th (a small second, a small first, the
//! rest), so that each part can be cut without copies (CutSplit, section IV). A node divides its box along one word into 2^n
//! equal parts, cut as HiCuts does: the word in which the fullest part is emptiest, as many cuts as copies of rules allow. A
//! leaf has its rules in order of priority. A packet goes down each tree and takes the earliest rule.
//!
//! Memory is bounded by `Budget::bytes`: when that is spent, what is open becomes leaves, however long.

use crate::budget::Budget;
use crate::rules::Rules;

/// Rules of a leaf that is not divided.
pub const LEAF: usize = 8;
/// Copies of rules that one node's cuts may make, a rule.
const COPIES: usize = 3;
/// Most cuts of a node: 2^this.
const MOST_CUTS: u32 = 6;
/// Nodes on the longest way.
const MOST_DEPTH: u32 = 24;

/// A node: two words.
///
/// `[word | shift << 8 | bits << 16, first child]`: on to child `first + (x >> shift & 2^bits - 1)`;
/// `[LEAF_BIT | rules, first]`: rules `list[first ..]`.
pub type Node = [u32; 2];

/// Marks leaves.
pub const LEAF_BIT: u32 = 1 << 31;

/// Trees over rules.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trees {
    /// where each tree begins
    pub roots: Vec<u32>,
    /// their nodes
    pub nodes: Vec<Node>,
    /// rules of leaves, by index, ascending in each
    pub list: Vec<u32>,
}

type Space = Vec<(u32, u32)>;

impl Trees {
    /// Trees over these rules.
    #[must_use]
    pub fn build(rules: &Rules, budget: &Budget) -> Self {
        let mut trees = Self::default();
        let space: Space = rules.key().words().iter().map(|w| (0, w.max())).collect();
        // Half for nodes and lists; the rules themselves take of the other.
        let most = (budget.bytes / 2 / 8).max(rules.len() * 4);
        for part in parts(rules, &space) {
            if part.is_empty() {
                continue;
            }
            let root = trees.nodes.len() as u32;
            trees.roots.push(root);
            trees.nodes.push([LEAF_BIT, 0]);
            // Breadth first: what the budget leaves undivided is then everywhere alike.
            let mut open = std::collections::VecDeque::from([(root, part, space.clone(), 0)]);
            while let Some((at, part, space, depth)) = open.pop_front() {
                let spent = trees.nodes.len() * 2 + trees.list.len();
                let cut = if part.len() <= LEAF || depth >= MOST_DEPTH || spent > most {
                    None
                } else {
                    best(rules, &part, &space)
                };
                let Some(cut) = cut else {
                    let first = trees.list.len() as u32;
                    if let Some(node) = trees.nodes.get_mut(at as usize) {
                        *node = [LEAF_BIT | part.len() as u32, first];
                    }
                    trees.list.extend(part);
                    continue;
                };
                let first = trees.nodes.len() as u32;
                if let Some(node) = trees.nodes.get_mut(at as usize) {
                    *node = [cut.word as u32 | cut.shift << 8 | cut.bits << 16, first];
                }
                for (i, part) in cut.divide(rules, &part, &space).into_iter().enumerate() {
                    trees.nodes.push([LEAF_BIT, 0]);
                    open.push_back((
                        first + i as u32,
                        part,
                        cut.child(&space, i as u32),
                        depth + 1,
                    ));
                }
            }
        }
        trees
    }

    /// The index of the first rule that contains a key; none if none does.
    #[must_use]
    pub fn find(&self, rules: &Rules, words: &[u32]) -> Option<usize> {
        let first = self
            .roots
            .iter()
            .filter_map(|r| self.walk(*r, rules, words));
        first.min()
    }

    fn walk(&self, root: u32, rules: &Rules, words: &[u32]) -> Option<usize> {
        let mut at = root;
        loop {
            let &[what, first] = self.nodes.get(at as usize)?;
            if what & LEAF_BIT != 0 {
                let first = first as usize;
                let leaf = self.list.get(first..first + (what & !LEAF_BIT) as usize)?;
                let contains =
                    |i: &&u32| rules.get(**i as usize).is_some_and(|r| r.contains(words));
                return leaf.iter().find(contains).map(|i| *i as usize);
            }
            let (word, shift, bits) = (what & 0xff, what >> 8 & 0xff, what >> 16);
            let x = words.get(word as usize).copied().unwrap_or(0);
            at = first + (x >> shift & ((1 << bits) - 1));
        }
    }
}

/// Rules by which of the two widest words they are small in.
fn parts(rules: &Rules, space: &Space) -> Vec<Vec<u32>> {
    let mut wide: Vec<usize> = (0..space.len()).collect();
    wide.sort_by_key(|w| std::cmp::Reverse(space.get(*w).map_or(0, |s| s.1)));
    let small = |rule: &crate::rules::Rule<'_>, nth: usize| {
        let range = wide.get(nth).and_then(|w| rule.ranges.get(*w));
        range.is_some_and(|r| r.1 - r.0 < 1 << 16)
    };
    let mut parts = vec![Vec::new(); 3];
    for (i, rule) in rules.iter().enumerate() {
        let part = match (small(&rule, 1), small(&rule, 0)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        parts[part].push(i as u32);
    }
    parts
}

/// A division of a box.
#[derive(Clone, Copy, Debug)]
struct Cut {
    word: usize,
    shift: u32,
    bits: u32,
}

impl Cut {
    /// Parts of a box, whose size along a word is a power of two at a multiple of itself, that a range meets.
    fn touched(&self, space: (u32, u32), range: (u32, u32)) -> (u32, u32) {
        let at = |x: u32| x >> self.shift & ((1 << self.bits) - 1);
        (at(range.0.max(space.0)), at(range.1.min(space.1)))
    }

    fn child(&self, space: &Space, index: u32) -> Space {
        let mut space = space.clone();
        if let Some(range) = space.get_mut(self.word) {
            let first = range.0 + (index << self.shift);
            *range = (first, first + ((1_u64 << self.shift) - 1) as u32);
        }
        space
    }

    fn divide(&self, rules: &Rules, part: &[u32], space: &Space) -> Vec<Vec<u32>> {
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); 1 << self.bits];
        for &i in part {
            let (first, last) = self.range(rules, i, space);
            for part in &mut parts[first as usize..=last as usize] {
                part.push(i);
            }
        }
        // Behind a rule that fills a part, none is asked.
        for (index, part) in parts.iter_mut().enumerate() {
            let space = self.child(space, index as u32);
            let fills = |i: &u32| {
                let rule = rules.get(*i as usize);
                rule.is_some_and(|r| {
                    r.ranges
                        .iter()
                        .zip(&space)
                        .all(|(r, s)| r.0 <= s.0 && s.1 <= r.1)
                })
            };
            if let Some(at) = part.iter().position(fills) {
                part.truncate(at + 1);
            }
        }
        parts
    }

    fn range(&self, rules: &Rules, rule: u32, space: &Space) -> (u32, u32) {
        let rule = rules.get(rule as usize);
        let range = rule.and_then(|r| r.ranges.get(self.word).copied());
        let space = space.get(self.word).copied().unwrap_or((0, 0));
        self.touched(space, range.unwrap_or(space))
    }
}

/// The cut whose fullest part has the fewest rules, if it has fewer than there are.
fn best(rules: &Rules, part: &[u32], space: &Space) -> Option<Cut> {
    let mut best: Option<(usize, usize, Cut)> = None;
    for (word, range) in space.iter().enumerate() {
        let width = 32 - (range.1 - range.0).leading_zeros();
        let mut bits = MOST_CUTS.min(width);
        while bits > 0 {
            let cut = Cut {
                word,
                shift: width - bits,
                bits,
            };
            let (fullest, sum) = fill(rules, part, space, cut);
            if sum <= COPIES * part.len() + (1 << bits) / 2 || bits == 1 {
                let better = best.is_none_or(|b| (fullest, sum) < (b.0, b.1));
                if fullest < part.len() && better {
                    best = Some((fullest, sum, cut));
                }
                break;
            }
            bits -= 1;
        }
    }
    best.map(|b| b.2)
}

/// Rules in the fullest part, and in all.
fn fill(rules: &Rules, part: &[u32], space: &Space, cut: Cut) -> (usize, usize) {
    // Begins and ends, from which the sums follow.
    let mut change = [0_i64; (1 << MOST_CUTS) + 1];
    let mut sum = 0;
    for &i in part {
        let (first, last) = cut.range(rules, i, space);
        change[first as usize] += 1;
        change[last as usize + 1] -= 1;
        sum += (last - first) as usize + 1;
    }
    let mut inside = 0;
    let fullest = change.iter().map(|c| {
        inside += c;
        inside
    });
    (fullest.max().unwrap_or(0) as usize, sum)
}
