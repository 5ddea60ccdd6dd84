//! The set of existing expressions: a table of numbers, open addressing with linear probing (Knuth, The Art of
//! Computer Programming, volume 3, section 6.4). What they are stands in the arena alone.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

use super::{ExprId, Node};

/// No expression.
const NONE: u32 = u32::MAX;
const FIRST: usize = 64;

/// By hash, the numbers of expressions.
#[derive(Clone, Debug)]
pub(super) struct Interned {
    /// the lower half of the hash, and the expression; as many as a power of two, at most half of them taken
    slots: Vec<(u32, u32)>,
    taken: usize,
    secret: u64,
}

impl Default for Interned {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            taken: 0,
            // Programs choose the numbers in expressions; they shall not choose which of them collide.
            secret: RandomState::new().hash_one(0_u32) | 1,
        }
    }
}

impl Interned {
    /// Where to look for an expression.
    pub fn hash(&self, node: &Node, width: u32) -> u32 {
        let mut folded = Folded {
            state: self.secret,
            secret: self.secret,
        };
        node.hash(&mut folded);
        folded.write_u32(width);
        folded.finish() as u32
    }

    /// The expression with this hash for which `is` holds.
    pub fn find(&self, hash: u32, is: impl Fn(ExprId) -> bool) -> Option<ExprId> {
        let last = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & last;
        loop {
            match self.slots.get(at) {
                None | Some((_, NONE)) => return None,
                Some((other, id)) if *other == hash && is(ExprId(*id)) => return Some(ExprId(*id)),
                Some(_) => at = (at + 1) & last,
            }
        }
    }

    /// Takes in one that is not there.
    pub fn insert(&mut self, hash: u32, id: ExprId) {
        if 2 * (self.taken + 1) > self.slots.len() {
            let room = (2 * self.slots.len()).max(FIRST);
            let old = std::mem::replace(&mut self.slots, vec![(0, NONE); room]);
            for slot in old.into_iter().filter(|(_, id)| *id != NONE) {
                self.put(slot);
            }
        }
        self.put((hash, id.0));
        self.taken += 1;
    }

    fn put(&mut self, slot: (u32, u32)) {
        let last = self.slots.len().saturating_sub(1);
        let mut at = slot.0 as usize & last;
        while self.slots.get(at).is_some_and(|(_, id)| *id != NONE) {
            at = (at + 1) & last;
        }
        if let Some(free) = self.slots.get_mut(at) {
            *free = slot;
        }
    }
}

/// Multiplies by a secret number and adds the halves of the product.
struct Folded {
    state: u64,
    secret: u64,
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        // The operand is never 0 for long: what was mixed in stays.
        let mixed = self.state.rotate_left(23) ^ n;
        let product = u128::from(mixed ^ 0x9e37_79b9_7f4a_7c15) * u128::from(self.secret);
        self.state = (product as u64) ^ ((product >> 64) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_in_is_found_and_nothing_else() {
        let mut table = Interned::default();
        let nodes: Vec<Node> = (0..5000).map(|n| Node::Const(n << 40)).collect();
        let is = |n: usize| move |id: ExprId| id.0 as usize == n;
        for (n, node) in nodes.iter().enumerate() {
            let hash = table.hash(node, 64);
            assert_eq!(table.find(hash, is(n)), None);
            table.insert(hash, ExprId(n as u32));
        }
        for (n, node) in nodes.iter().enumerate() {
            let hash = table.hash(node, 64);
            assert_eq!(table.find(hash, is(n)), Some(ExprId(n as u32)));
        }
        let other = table.hash(&Node::Const(1), 64);
        assert_eq!(
            table.find(other, |id| nodes.get(id.0 as usize)
                == Some(&Node::Const(1))),
            None
        );
    }

    #[test]
    fn numbers_that_differ_in_few_bits_spread() {
        let table = Interned::default();
        for shift in [0, 20, 52] {
            let slots: std::collections::HashSet<u32> = (0..4096_u64)
                .map(|n| table.hash(&Node::Const(n << shift), 64) & 0xffff)
                .collect();
            // So many random ones would leave 127 short of all, on average.
            assert!(slots.len() > 3500, "{shift}: {}", slots.len());
        }
    }
}
