//! Cut trees: where a diagram would be too large.
//!
//! Rules are divided by which of the two widest words they fix to less than a 2^16th (a small second, a small first, the
//! rest), so that each part can be cut without copies (CutSplit, section IV). A node divides its box along one word into up
//! to fifteen intervals that begin where rules do or behind their ends, so that the fullest of them has as few rules as
//! possible: equal parts, as HiCuts has them, leave rules of a few ports together. A node is one cache line, like a block of a
//! diagram. A leaf has its rules in order of priority, in groups of eight that are compared at once. A packet goes down
//! each tree and takes the earliest rule.
//!
//! Memory is bounded by `Budget::bytes`: when half of that is spent, or twice what the rules take by themselves where that is
//! more, what is open becomes leaves, however long.

use crate::budget::Budget;
use crate::rules::Rules;

/// Rules that are compared at once; a leaf of so many is not divided.
pub const GROUP: usize = 8;
/// Parts of a node.
const WAYS: usize = 15;
/// What a step down costs, where as many copies of rules as there are rules cost ln 2.
const STEP: f64 = 2.0;
/// So many rules are divided only if that costs less than `DEAR`: four groups are compared faster than three more nodes are passed.
const FEW: usize = 32;
const DEAR: f64 = 2.0;
/// A cut is chosen by so many rules, or up to twice as many.
const SAMPLE: usize = 2048;
/// Nodes on the longest way.
const MOST_DEPTH: u32 = 24;

/// A node: the ends of its parts but the last, ascending and filled up with the greatest number; then
/// `[word, first child]`: on to child `first + ends less than x`, or
/// `[LEAF_BIT | groups, first group]`: rules `list[GROUP * first ..]`.
pub type Node = [u32; 16];

/// Where a node says its word or that it is a leaf, and where its children or groups are.
pub const WHAT: usize = 14;
/// See [`WHAT`].
pub const FIRST: usize = 15;
/// Marks leaves.
pub const LEAF_BIT: u32 = 1 << 31;
/// Fills groups up.
pub const NO_RULE: u32 = u32::MAX;

/// Trees over rules.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trees {
    /// where each tree begins
    pub roots: Vec<u32>,
    /// their nodes
    pub nodes: Vec<Node>,
    /// rules of leaves, by index, ascending in each, in whole groups
    pub list: Vec<u32>,
}

type Space = Vec<(u32, u32)>;

/// What is still to be divided.
struct Open {
    node: u32,
    rules: Vec<u32>,
    space: Space,
    depth: u32,
}

impl Trees {
    /// Trees over these rules.
    #[must_use]
    pub fn build(rules: &Rules, budget: &Budget) -> Self {
        let mut trees = Self::default();
        let space: Space = rules.key().words().iter().map(|w| (0, w.max())).collect();
        let group = 64 * (space.len() + 1);
        let most = (budget.bytes / 2).max(2 * group * rules.len().div_ceil(GROUP));
        for part in parts(rules, &space) {
            if part.is_empty() {
                continue;
            }
            let root = trees.nodes.len() as u32;
            trees.roots.push(root);
            trees.nodes.push([0; 16]);
            let mut groups = part.len().div_ceil(GROUP);
            // Breadth first: what the budget leaves undivided is then everywhere alike.
            let mut open = std::collections::VecDeque::from([Open {
                node: root,
                rules: part,
                space: space.clone(),
                depth: 0,
            }]);
            while let Some(now) = open.pop_front() {
                let done = trees.list.len() / GROUP;
                let spent = 64 * trees.nodes.len() + group * (done + groups);
                let few = now.rules.len() <= GROUP || now.depth >= MOST_DEPTH;
                let cut = match few || spent > most {
                    true => None,
                    false => Cut::best(rules, &now.rules, &now.space),
                };
                groups -= now.rules.len().div_ceil(GROUP);
                let Some(cut) = cut else {
                    trees.leaf(now.node, &now.rules);
                    continue;
                };
                let first = trees.nodes.len() as u32;
                trees.put(now.node, cut.node(first));
                for (i, (part, space)) in cut
                    .divide(rules, &now.rules, &now.space)
                    .into_iter()
                    .enumerate()
                {
                    trees.nodes.push([0; 16]);
                    groups += part.len().div_ceil(GROUP);
                    open.push_back(Open {
                        node: first + i as u32,
                        rules: part,
                        space,
                        depth: now.depth + 1,
                    });
                }
            }
        }
        trees
    }

    fn put(&mut self, at: u32, node: Node) {
        if let Some(place) = self.nodes.get_mut(at as usize) {
            *place = node;
        }
    }

    fn leaf(&mut self, at: u32, rules: &[u32]) {
        let mut node = [u32::MAX; 16];
        node[WHAT] = LEAF_BIT | rules.len().div_ceil(GROUP) as u32;
        node[FIRST] = (self.list.len() / GROUP) as u32;
        self.put(at, node);
        self.list.extend(rules);
        self.list
            .resize(self.list.len().next_multiple_of(GROUP), NO_RULE);
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
        let mut node = self.nodes.get(root as usize)?;
        while node[WHAT] & LEAF_BIT == 0 {
            let x = words.get(node[WHAT] as usize).copied().unwrap_or(0);
            node = self.nodes.get(node[FIRST] as usize + way(node, x))?;
        }
        let first = GROUP * node[FIRST] as usize;
        let last = first + GROUP * (node[WHAT] & !LEAF_BIT) as usize;
        let contains = |i: &&u32| rules.get(**i as usize).is_some_and(|r| r.contains(words));
        let found = self.list.get(first..last)?.iter().find(contains);
        found.map(|i| *i as usize)
    }
}

/// Which part of a node a number is in.
#[must_use]
pub fn way(node: &Node, x: u32) -> usize {
    node[..WHAT].iter().filter(|end| **end < x).count()
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

/// A division of a box along a word.
#[derive(Clone, Debug)]
struct Cut {
    word: usize,
    /// the last numbers of the parts but the last
    ends: Vec<u32>,
    /// rules in the fullest part
    fullest: usize,
    /// rules in all parts
    sum: usize,
}

impl Cut {
    /// The cut that costs least for each halving of the rules that are left to compare: copies of rules, and a step. None if no
    /// cut leaves fewer, or of a few rules too many.
    fn best(rules: &Rules, part: &[u32], space: &Space) -> Option<Self> {
        // Of many rules some say as much.
        let some: Vec<u32>;
        let part = match part.len() / SAMPLE {
            0 | 1 => part,
            apart => {
                some = part.iter().step_by(apart).copied().collect();
                &some
            }
        };
        let n = part.len() as f64;
        let mut best: Option<(f64, Self)> = None;
        for word in 0..space.len() {
            let Some(along) = Along::new(rules, part, space, word) else {
                continue;
            };
            for ways in [WAYS, 8, 4, 2] {
                let cut = along.cut(word, ways);
                if cut.fullest == part.len() {
                    continue;
                }
                let cost = ((cut.sum as f64 / n).ln() + STEP) / (n / cut.fullest as f64).ln();
                if best.as_ref().is_none_or(|b| cost < b.0) {
                    best = Some((cost, cut));
                }
            }
        }
        best.filter(|b| part.len() > FEW || b.0 < DEAR).map(|b| b.1)
    }

    fn node(&self, first: u32) -> Node {
        let mut node = [u32::MAX; 16];
        for (place, end) in node[..WHAT].iter_mut().zip(&self.ends) {
            *place = *end;
        }
        node[WHAT] = self.word as u32;
        node[FIRST] = first;
        node
    }

    /// The rules of each part and its box.
    fn divide(&self, rules: &Rules, part: &[u32], space: &Space) -> Vec<(Vec<u32>, Space)> {
        let (mut from, last) = space.get(self.word).copied().unwrap_or((0, 0));
        let mut all: Vec<(Vec<u32>, Space)> = Vec::new();
        for end in self.ends.iter().copied().chain([last]) {
            let mut space = space.clone();
            if let Some(range) = space.get_mut(self.word) {
                *range = (from, end);
            }
            all.push((Vec::new(), space));
            from = end.wrapping_add(1);
        }
        let mut filled = vec![false; all.len()];
        for &i in part {
            let Some((rule, &(first, last))) = rules
                .get(i as usize)
                .and_then(|r| Some((r, r.ranges.get(self.word)?)))
            else {
                continue;
            };
            let at = |x: u32| self.ends.partition_point(|end| *end < x);
            let (least, most) = (at(first), at(last));
            for (part, filled) in (all.iter_mut().zip(&mut filled)).take(most + 1).skip(least) {
                // Behind a rule that fills a part, none is asked.
                if !*filled {
                    part.0.push(i);
                    let mut pairs = rule.ranges.iter().zip(&part.1);
                    *filled = pairs.all(|(r, s)| r.0 <= s.0 && s.1 <= r.1);
                }
            }
        }
        all
    }
}

/// Rules along one word of a box.
struct Along {
    /// where intervals begin between which nothing changes, ascending
    from: Vec<u32>,
    /// rules that begin no later than each
    begun: Vec<usize>,
    /// rules that end before each
    ended: Vec<usize>,
}

impl Along {
    /// None if all rules have the same interval.
    fn new(rules: &Rules, part: &[u32], space: &Space, word: usize) -> Option<Self> {
        let (least, most) = space.get(word).copied()?;
        let ranges = part
            .iter()
            .filter_map(|i| rules.get(*i as usize)?.ranges.get(word));
        let (mut firsts, mut lasts): (Vec<u32>, Vec<u32>) =
            ranges.map(|r| (r.0.max(least), r.1.min(most))).unzip();
        firsts.sort_unstable();
        lasts.sort_unstable();
        let behind = lasts.iter().filter(|x| **x < most).map(|x| x + 1);
        let mut from: Vec<u32> = firsts
            .iter()
            .copied()
            .chain(behind)
            .chain([least])
            .collect();
        from.sort_unstable();
        from.dedup();
        if from.len() == 1 {
            return None;
        }
        let upto = |sorted: &[u32], x: u32, with: bool| {
            sorted.partition_point(|y| *y < x || with && *y == x)
        };
        let begun = from.iter().map(|x| upto(&firsts, *x, true)).collect();
        let ended = from.iter().map(|x| upto(&lasts, *x, false)).collect();
        Some(Self { from, begun, ended })
    }

    /// The last interval of the part that begins with one and has at most so many rules; none if that has more by itself.
    fn part(&self, first: usize, most: usize) -> Option<usize> {
        let most = most + self.ended.get(first)?;
        let behind = self.begun.partition_point(|b| *b <= most);
        (behind > first).then(|| behind - 1)
    }

    /// Where parts of at most so many rules end; none if they are more than `ways`.
    fn parts(&self, most: usize, ways: usize) -> Option<Vec<usize>> {
        let (mut first, mut lasts) = (0, Vec::new());
        while first < self.from.len() {
            if lasts.len() == ways {
                return None;
            }
            let last = self.part(first, most)?;
            lasts.push(last);
            first = last + 1;
        }
        Some(lasts)
    }

    /// The cut into so many parts at most whose fullest has the fewest rules.
    fn cut(&self, word: usize, ways: usize) -> Cut {
        let (mut low, mut high) = (0, self.begun.last().copied().unwrap_or(0));
        while low < high {
            let middle = (low + high) / 2;
            match self.parts(middle, ways) {
                Some(_) => high = middle,
                None => low = middle + 1,
            }
        }
        let lasts = self.parts(high, ways).unwrap_or_default();
        let (mut first, mut fullest, mut sum) = (0, 0, 0);
        for &last in &lasts {
            let begun = self.begun.get(last).copied().unwrap_or(0);
            let inside = begun - self.ended.get(first).copied().unwrap_or(0);
            fullest = fullest.max(inside);
            sum += inside;
            first = last + 1;
        }
        let behind = lasts.iter().filter_map(|last| self.from.get(last + 1));
        Cut {
            word,
            ends: behind.map(|x| x - 1).collect(),
            fullest,
            sum,
        }
    }
}
