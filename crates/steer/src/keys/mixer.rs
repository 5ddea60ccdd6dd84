//! A secret permutation of the indexes, linear over GF(2).
//!
//! Which queue an index leads to is free. High index bits alone as the queue would tell an attacker which
//! header bits never matter: next to a cancelled field some reach low index bits only. A linear
//! permutation drawn with the key leaves no such bits, and yet takes the indexes of a subnet, which are a
//! subspace, to all queues alike, where a table drawn at random would not.

use rand::rand_core::Rng;

use crate::gf2::word_rank;
use crate::table::even;

/// An invertible map of indexes: what each index bit, from the lowest, contributes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Mixer(Vec<u64>);

impl Mixer {
    /// One of all invertible maps of this many bits (at most 32), each as likely as any other.
    pub fn draw(bits: usize, random: &mut impl Rng) -> Self {
        let mask = (1_u64 << bits) - 1;
        loop {
            let columns: Vec<u64> = (0..bits).map(|_| random.next_u64() & mask).collect();
            // Of all matrices more than a quarter are invertible.
            if word_rank(columns.iter().copied()) == bits {
                return Self(columns);
            }
        }
    }

    /// Where an index goes.
    pub fn apply(&self, index: u64) -> u64 {
        let ones = (0..).zip(&self.0).filter(|(bit, _)| index >> bit & 1 == 1);
        ones.fold(0, |sum, (_, column)| sum ^ column)
    }

    /// For each of `indexes` indexes its queue: evenly, once permuted.
    pub fn queues(&self, indexes: usize, queues: u32) -> Vec<u32> {
        let even = even(indexes, queues);
        let queue = |index| even.get(self.apply(index as u64) as usize).copied();
        (0..indexes)
            .map(|index| queue(index).unwrap_or(0))
            .collect()
    }
}
