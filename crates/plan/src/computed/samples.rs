//! Packets at random, and those that differ from them in one bit: which of them have the same key needs no solver.

use std::collections::{BTreeMap, HashMap};

use millrace_model::expr::eval::{Course, LANES};
use millrace_model::expr::{Arena, ExprId};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::formula::Formula;

/// Packets of which every bit is turned.
const TURNED: usize = 4;
/// Packets at random.
const RANDOM: usize = 256;

/// Values of expressions that are worked out for one formula, unless `LEAST` packets take more: a question to the solver costs as much as some
/// millions.
const WORK: usize = 1 << 21;
const LEAST: usize = 64;

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
        let mut packets = Vec::new();
        for turned in 0..TURNED {
            let packet = some([0, 0xff].get(turned).copied());
            for at in &offsets {
                for bit in 0..8 {
                    let mut other = packet.clone();
                    other.entry(*at).and_modify(|b| *b ^= 1 << bit);
                    packets.push(other);
                }
            }
            packets.push(packet);
        }
        packets.extend((0..RANDOM).map(|_| some(None)));
        let roots = [formula.when.as_slice(), &formula.key].concat();
        let mut course = Course::of(arena, &roots);
        packets.truncate((WORK / course.len().max(1)).max(LEAST));
        let mut out = Self::default();
        for some in packets.chunks(LANES) {
            let byte = |lane: usize, at: u64| some.get(lane).and_then(|p| p.get(&at)).copied();
            course.run(arena, |lane, at| byte(lane, at).unwrap_or(0));
            for (lane, packet) in some.iter().enumerate() {
                let value = |e: &ExprId| course.value(lane, *e);
                if formula.when.iter().all(|e| value(e) == 1) {
                    out.add(formula.key.iter().map(value).collect(), packet.clone());
                }
            }
        }
        out
    }

    fn add(&mut self, key: Vec<u64>, packet: Bytes) {
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
