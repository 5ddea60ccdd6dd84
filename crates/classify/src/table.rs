//! The table that emitted code walks, in memory of the host's: fastpath/state/classifier.h has the other side.
//!
//! All is blocks of 64 bytes, a cache line each, of sixteen numbers of 32 bits. Block 0 is the head, blocks 1 to 4 say
//! where the key's words are, block 5 in which order they are tested, block 6 where trees begin.
//!
//! A node of a diagram is a B-tree of blocks without pointers: fifteen numbers that divide sixteen intervals, and in the
//! last place where the blocks below begin ([`INNER`]), or in the lowest blocks, where the node's children begin among
//! `children`. One comparison of the whole block and a count of bits say which way to go on. All nodes of a level are left
//! after the same number of steps: a lower tree is entered at its root and stays in its lowest block. So a burst goes
//! level by level and step by step with no branch that depends on a packet.
//!
//! A node of a tree is a block ([`crate::trees::Node`]). A group of eight rules is a block for each word, with the first
//! numbers of the rules' intervals and how many more each has, and one with the rules' indices and classes.

use hashbrown::HashMap;

use crate::budget::Exceeded;
use crate::diagram::{Diagrams, Ref};
use crate::key::{Key, Order};
use crate::rules::Rules;
use crate::trees::{FIRST as FIRST_OF_NODE, GROUP, LEAF_BIT, NO_RULE, Trees, WHAT, way};

/// Sixteen numbers in a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Block(pub [u32; 16]);

/// What is at the places of the head.
mod head {
    pub const FORM: usize = 0;
    pub const WORDS: usize = 1;
    pub const CLASSES: usize = 2;
    pub const LEVELS: usize = 3;
    pub const ROOT: usize = 4;
    pub const CHILDREN: usize = 5;
    pub const ROOTS: usize = 6;
    pub const NODES: usize = 7;
    pub const GROUPS: usize = 8;
    pub const BLOCKS: usize = 9;
    pub const KEY_BYTES: usize = 10;
}

const DIAGRAM: u32 = 1;
const TREES: u32 = 2;
/// Where words, levels and roots are, and the first block behind them.
const WORDS_AT: usize = 1;
const LEVELS_AT: usize = 5;
const ROOTS_AT: usize = 6;
const FIRST: usize = 7;

/// Marks a block with blocks below it.
const INNER: u32 = 1 << 31;
/// Intervals that a block divides.
const WAYS: usize = 16;

/// A table: blocks, and how they are to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    blocks: Vec<Block>,
}

impl Table {
    /// Its blocks, as they are handed to emitted code.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    /// The table of a diagram whose levels test words in `order` and whose classes are below `classes`; it has at most `most`
    /// bytes.
    ///
    /// # Errors
    /// [`Exceeded`] where it had more.
    pub fn of_diagram(
        key: &Key,
        classes: u32,
        diagrams: &Diagrams,
        root: Ref,
        order: &[usize],
        most: usize,
    ) -> Result<Self, Exceeded> {
        let reached = diagrams.reached(root);
        let mut levels = Vec::new();
        for (level, nodes) in reached.iter().enumerate() {
            let widest = nodes.iter().map(|n| diagrams.edges(*n).len()).max();
            if let Some(widest) = widest {
                levels.push((level, steps(widest)));
            }
        }
        let mut layout = Layout {
            diagrams,
            levels: levels.iter().map(|l| l.0 as u8).collect(),
            blocks: Vec::new(),
            children: Vec::new(),
            placed: vec![HashMap::new(); levels.len()],
            most: most / size_of::<Block>(),
        };
        let start = layout.place(root, 0)?;
        let Layout {
            blocks, children, ..
        } = layout;
        let mut table = Self::headed(key, classes, DIAGRAM);
        table.set(head::LEVELS, levels.len());
        table.set(head::ROOT, start as usize);
        for (i, (level, steps)) in levels.iter().enumerate() {
            let word = order.get(*level).copied().unwrap_or(0);
            table.put(LEVELS_AT * 16 + i, word as u32 | (*steps as u32) << 8);
        }
        table.blocks.extend(blocks);
        table.append(head::CHILDREN, children.into_iter());
        Ok(table.finished())
    }

    /// The table of trees over rules whose classes are below `classes`.
    #[must_use]
    pub fn of_trees(rules: &Rules, classes: u32, trees: &Trees) -> Self {
        let mut table = Self::headed(rules.key(), classes, TREES);
        table.set(head::ROOTS, trees.roots.len());
        for (i, root) in trees.roots.iter().enumerate() {
            table.put(ROOTS_AT * 16 + i, *root);
        }
        table.set(head::NODES, table.blocks.len());
        table.blocks.extend(trees.nodes.iter().map(|n| Block(*n)));
        table.set(head::GROUPS, table.blocks.len());
        for group in trees.list.chunks(GROUP) {
            for word in 0..rules.key().words().len() {
                let mut block = Block([0; 16]);
                for (i, rule) in group.iter().enumerate() {
                    let range = rules.get(*rule as usize).map(|r| r.ranges.get(word));
                    if let Some(Some(&(first, last))) = range {
                        block.0[i] = first;
                        block.0[GROUP + i] = last - first;
                    }
                }
                table.blocks.push(block);
            }
            let mut block = Block([NO_RULE; 16]);
            for (i, rule) in group.iter().enumerate() {
                block.0[i] = *rule;
                block.0[GROUP + i] = rules.get(*rule as usize).map_or(0, |r| r.class);
            }
            table.blocks.push(block);
        }
        table.finished()
    }

    fn headed(key: &Key, classes: u32, form: u32) -> Self {
        let mut table = Self {
            blocks: vec![Block([0; 16]); FIRST],
        };
        table.set(head::FORM, form as usize);
        table.set(head::WORDS, key.words().len());
        table.set(head::CLASSES, classes as usize);
        table.set(head::KEY_BYTES, key.bytes() as usize);
        // Four bytes are read at a time, and never beyond the key, which comes in whole words of 8 bytes.
        let end = key.bytes().next_multiple_of(8);
        for (i, word) in key.words().iter().enumerate() {
            let from = word.offset.min(end - 4);
            let skipped = 8 * (word.offset - from);
            let (swap, shift) = match word.order {
                Order::Host => (0, skipped),
                Order::Network => (1, 32 - 8 * word.bytes - skipped),
            };
            for (part, value) in [from, swap, shift, word.max()].into_iter().enumerate() {
                table.put(WORDS_AT * 16 + 4 * i + part, value);
            }
        }
        table
    }

    fn finished(mut self) -> Self {
        self.set(head::BLOCKS, self.blocks.len());
        self
    }

    fn set(&mut self, at: usize, value: usize) {
        self.put(at, value as u32);
    }

    fn put(&mut self, at: usize, value: u32) {
        if let Some(place) = self
            .blocks
            .get_mut(at / 16)
            .and_then(|b| b.0.get_mut(at % 16))
        {
            *place = value;
        }
    }

    /// Appends numbers and says in the head where they begin, counted in numbers.
    fn append(&mut self, name: usize, numbers: impl Iterator<Item = u32>) {
        self.set(name, self.blocks.len() * 16);
        let mut block = Block([0; 16]);
        let mut filled = 0;
        for number in numbers {
            block.0[filled] = number;
            filled += 1;
            if filled == 16 {
                self.blocks
                    .push(std::mem::replace(&mut block, Block([0; 16])));
                filled = 0;
            }
        }
        if filled > 0 {
            self.blocks.push(block);
        }
    }

    fn at(&self, index: usize) -> u32 {
        let block = self.blocks.get(index / 16);
        block
            .and_then(|b| b.0.get(index % 16))
            .copied()
            .unwrap_or(0)
    }

    /// The number at a place of the head.
    fn head(&self, name: usize) -> usize {
        self.at(name) as usize
    }

    /// The class of a key in words: the walk that emitted code makes, one packet at a time.
    #[must_use]
    pub fn find(&self, words: &[u32]) -> u32 {
        match self.at(head::FORM) {
            DIAGRAM => self.walk(words),
            _ => self.search(words),
        }
    }

    fn walk(&self, words: &[u32]) -> u32 {
        let mut at = self.head(head::ROOT);
        for level in 0..self.head(head::LEVELS) {
            let what = self.at(LEVELS_AT * 16 + level);
            let x = words.get((what & 0xff) as usize).copied().unwrap_or(0);
            for _ in 1..what >> 8 {
                let (below, way) = self.step(at, x);
                if below & INNER != 0 {
                    at = (below & !INNER) as usize + way;
                }
            }
            let (children, way) = self.step(at, x);
            at = self.at(self.head(head::CHILDREN) + children as usize + way) as usize;
        }
        at as u32
    }

    fn step(&self, at: usize, x: u32) -> (u32, usize) {
        let Some(Block(numbers)) = self.blocks.get(FIRST + at) else {
            return (0, 0);
        };
        let way = numbers[..WAYS - 1].iter().filter(|n| **n < x).count();
        (numbers[WAYS - 1], way)
    }

    fn search(&self, words: &[u32]) -> u32 {
        let (nodes, groups) = (self.head(head::NODES), self.head(head::GROUPS));
        let of_group = self.head(head::WORDS) + 1;
        let none = Block([0; 16]);
        let block = |at: usize| self.blocks.get(at).unwrap_or(&none);
        let (mut first, mut class) = (NO_RULE, 0);
        for tree in 0..self.head(head::ROOTS) {
            let mut node = block(nodes + self.at(ROOTS_AT * 16 + tree) as usize).0;
            while node[WHAT] & LEAF_BIT == 0 && node != none.0 {
                let x = words.get(node[WHAT] as usize).copied().unwrap_or(0);
                node = block(nodes + node[FIRST_OF_NODE] as usize + way(&node, x)).0;
            }
            for group in 0..(node[WHAT] & !LEAF_BIT) as usize {
                let at = groups + of_group * (node[FIRST_OF_NODE] as usize + group);
                let inside = |i: &usize| {
                    (words.iter().enumerate()).all(|(w, x)| {
                        let Block(word) = block(at + w);
                        x.wrapping_sub(word[*i]) <= word[GROUP + i]
                    })
                };
                let Block(found) = block(at + of_group - 1);
                if let Some(i) = (0..GROUP).find(inside) {
                    if found[i] < first {
                        (first, class) = (found[i], found[GROUP + i]);
                    }
                    break;
                }
            }
        }
        class
    }
}

/// Blocks on the way through a node of so many edges.
fn steps(edges: usize) -> usize {
    let (mut steps, mut room) = (1, WAYS);
    while room < edges {
        room *= WAYS;
        steps += 1;
    }
    steps
}

struct Layout<'a> {
    diagrams: &'a Diagrams,
    levels: Vec<u8>,
    blocks: Vec<Block>,
    children: Vec<u32>,
    /// by level: where a node is, or one that only leads to it
    placed: Vec<HashMap<Ref, u32>>,
    most: usize,
}

impl Layout<'_> {
    /// Where a walk goes on to a node at a level, which may test nothing there; behind the last level, the class.
    fn place(&mut self, node: Ref, level: usize) -> Result<u32, Exceeded> {
        let Some(&tests) = self.levels.get(level) else {
            return Ok(node.number().unwrap_or(0));
        };
        if let Some(at) = self.placed.get(level).and_then(|p| p.get(&node)) {
            return Ok(*at);
        }
        let edges = match self.diagrams.level(node) {
            Some(own) if own == tests => self.diagrams.edges(node),
            _ => &[],
        };
        let (mut last, mut to) = (Vec::new(), Vec::new());
        if edges.is_empty() {
            last.push(u32::MAX);
            to.push(self.place(node, level + 1)?);
        }
        for edge in edges {
            last.push(edge.last);
            to.push(self.place(edge.to, level + 1)?);
        }
        if self.blocks.len() + self.children.len() / 16 > self.most {
            return Err(Exceeded);
        }
        let mut below = self.children.len() as u32;
        self.children.extend(to);
        let mut inner = 0;
        // From the lowest blocks up: each has the greatest numbers of what is below.
        loop {
            let first = self.blocks.len() as u32;
            let mut above = Vec::new();
            for (i, part) in last.chunks(WAYS).enumerate() {
                let mut numbers = [u32::MAX; WAYS];
                if let Some((greatest, others)) = part.split_last() {
                    numbers[..others.len()].copy_from_slice(others);
                    above.push(*greatest);
                }
                numbers[WAYS - 1] = inner | (below + (i * WAYS) as u32);
                self.blocks.push(Block(numbers));
            }
            if above.len() <= 1 {
                if let Some(placed) = self.placed.get_mut(level) {
                    placed.insert(node, first);
                }
                return Ok(first);
            }
            (last, below, inner) = (above, first, INNER);
        }
    }
}
