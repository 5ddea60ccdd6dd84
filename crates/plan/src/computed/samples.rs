//! Packets at random, and those that differ from them in one bit: which of them have the same key needs no solver.

use std::collections::{BTreeMap, HashMap};

use millrace_model::expr::Arena;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::formula::Formula;

/// Packets of which every bit is turned.
const TURNED: usize = 4;
/// Packets at random.
const RANDOM: usize = 256;

/// The bytes of a packet, by their places.
pub(super) type Bytes = BTreeMap<u64, u8>;

/// Packets by their key.
#[derive(Debug, Default)]
pub(super) struct Samples {
    by_key: HashMap<Vec<u64>, Vec<Bytes>>,
    /// keys in the order in which they were found
    order: Vec<Vec<u64>>,
}

impl Samples {
    /// Of a formula.
    pub fn of(arena: &Arena, formula: &Formula) -> Self {
        let offsets: Vec<u64> = formula.offsets(arena).iter().map(|at| *at as u64).collect();
        // The same each time, so that a plan says the same each time.
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut some = |fill: Option<u8>| -> Bytes {
            let one = |at: &u64| (*at, fill.unwrap_or_else(|| random.next_u64() as u8));
            offsets.iter().map(one).collect()
        };
        let mut out = Self::default();
        for turned in 0..TURNED {
            let packet = some([0, 0xff].get(turned).copied());
            for at in &offsets {
                for bit in 0..8 {
                    let mut other = packet.clone();
                    other.entry(*at).and_modify(|b| *b ^= 1 << bit);
                    out.add(arena, formula, other);
                }
            }
            out.add(arena, formula, packet);
        }
        for _ in 0..RANDOM {
            let packet = some(None);
            out.add(arena, formula, packet);
        }
        out
    }

    fn add(&mut self, arena: &Arena, formula: &Formula, packet: Bytes) {
        let assignment = Assignment::new(IdMap::default(), packet.clone());
        let Some(key) = formula.value(arena, &assignment) else {
            return;
        };
        let all = self.by_key.entry(key.clone()).or_default();
        if all.is_empty() {
            self.order.push(key);
        }
        all.push(packet);
    }

    /// Pairs with one key, of which the sums of two and more are all such pairs.
    pub fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Bytes, &'a Bytes)> {
        self.order.iter().flat_map(move |key| {
            let none = &[][..];
            let of = |samples: &'a Self| samples.by_key.get(key).map_or(none, Vec::as_slice);
            let (mine, theirs) = (of(self), of(other));
            let first = theirs.first();
            let all = mine.iter().filter_map(move |a| Some((a, first?)));
            let first = mine.first();
            all.chain(theirs.iter().skip(1).filter_map(move |b| Some((first?, b))))
        })
    }
}
