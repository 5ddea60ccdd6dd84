//! What somebody can do who knows the program, but not the key.
//!
//! For a key drawn uniformly from the space, two packets whose hash inputs differ by d meet in a table
//! entry with probability exactly 2^-r(d), where r(d) is the rank of the map from the key to the index of
//! d: the map is linear, and each of its 2^r(d) values as likely as any other. Differences in the inner
//! bits of a field have as much rank as the index has bits; at the edges, next to what is cancelled or
//! tied to another port's key, windows are cut and r(d) is less.

use rand::rand_core::Rng;

use super::case::{Bit, Part, Side};
use super::class::{Class, ClassId};
use super::solve::fixed;
use super::space::Space;
use crate::gf2::{Echelon, Row};

/// Independent differences whose combinations an attacker takes: 512 flows.
const WEAK: usize = 9;
/// Keys over which the share of the worst queue is averaged.
const KEYS: usize = 8;
/// With so many more bits than a random linear map needs to be injective it is, but for 2^-64.
const SURE: usize = 64;

/// What the packets of one class give away.
#[derive(Clone, PartialEq, Debug)]
pub struct Exposure {
    /// header bits that must be guessed for a second flow that shares the table entry of a first: the
    /// least r(d), over the differences that leave some run of index bits alone under every key
    pub entry_bits: usize,
    /// the same for sharing its core, with the table of [`Keys::queues`](super::Keys::queues): the base-2
    /// logarithm of how many flows it takes on average
    pub core_bits: f64,
    /// the weakest differences, at most nine, independent, with their r(d), weakest first; none where every
    /// difference has the rank of all index bits
    pub weakest: Vec<Difference>,
    /// dimensions of differences that reach no index under any key though no constraint asks for it: flows
    /// that differ in these only all meet, without any guess. 0 but where windows overlap
    pub blind: usize,
    /// the mean share of the worst queue, over keys and tables as they are drawn for use, when there is a
    /// flow for every combination of the weakest differences; none without any
    pub share: Option<f64>,
    /// the same where every flow falls on a queue by chance
    pub random_share: f64,
}

/// By which bits two packets differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// the bits, of hashed fields; their side is [`Side::A`]
    pub bits: Vec<Bit>,
    /// r: keys under which such packets meet are one in 2^r
    pub rank: usize,
}

impl Space {
    /// What the packets of a class give away; none for a class without a bit that reaches the index.
    #[must_use]
    pub fn exposure(&self, id: ClassId) -> Option<Exposure> {
        let class = self.classes().get(id)?;
        if self.table_rank(id) == 0 {
            return None;
        }
        let index = self.index_bits();
        let columns = self.columns(class);
        let meeting = kernel(&columns, 0, index);
        let invariant = self.invariants().get(id).copied().unwrap_or(0);
        let mut weak = Vec::new();
        let mut known = Echelon::new(class.bits());
        for difference in &meeting {
            known.insert(&mut difference.clone());
        }
        // The longer the run of index bits that a difference leaves alone, the less its rank.
        'found: for run in (1..index).rev() {
            for first in 0..=index - run {
                for difference in kernel(&columns, first, run) {
                    if weak.len() < WEAK && known.insert(&mut difference.clone()) {
                        weak.push((difference, index - run));
                    }
                }
                if weak.len() >= WEAK {
                    break 'found;
                }
            }
        }
        let entry_bits = weak.first().map_or(index, |(_, rank)| *rank);
        let cores = f64::from(self.target().cores.max(1));
        let entry = (-(entry_bits as f64)).exp2();
        let named = |(difference, rank): &(Row, usize)| Difference {
            bits: difference
                .ones()
                .filter_map(|at| place(class, at))
                .collect(),
            rank: *rank,
        };
        let (share, random_share) = self.shares(class, &weak);
        Some(Exposure {
            entry_bits,
            // Either the entry is the same, or it is another and leads to the same core by chance.
            core_bits: -(entry + (1.0 - entry) / cores).log2(),
            weakest: weak.iter().map(named).collect(),
            blind: (invariant + meeting.len()).saturating_sub(class.bits()),
            share: (!weak.is_empty()).then_some(share),
            random_share,
        })
    }

    /// For each input bit, the index under keys that together tell apart what any key does: those of the
    /// basis, or as many random ones as suffice.
    fn columns(&self, class: &Class) -> Vec<Vec<u64>> {
        let enough = class.bits() + SURE;
        let mut columns = vec![Vec::new(); class.bits()];
        let mut record = |key: &Row| {
            for (column, word) in columns.iter_mut().zip(self.words(class, key)) {
                column.push(word);
            }
        };
        if self.basis.len() <= enough {
            self.basis.iter().for_each(&mut record);
        } else {
            let mut random = fixed();
            (0..enough).for_each(|_| record(&self.uniform(&mut random)));
        }
        columns
    }

    /// The mean share of the worst queue, and the same for a function drawn at random, when there is a
    /// flow for every combination of the differences.
    fn shares(&self, class: &Class, weak: &[(Row, usize)]) -> (f64, f64) {
        let cores = self.target().cores;
        let flows = 1_usize << weak.len();
        let worst = |queues: &mut dyn Iterator<Item = u32>| {
            let mut load = vec![0_usize; cores as usize];
            for queue in queues {
                if let Some(load) = load.get_mut(queue as usize) {
                    *load += 1;
                }
            }
            load.into_iter().max().unwrap_or(0) as f64
        };
        let mut random = fixed();
        let (mut share, mut chance) = (0.0, 0.0);
        for _ in 0..KEYS {
            let (key, mixer) = self.best(&mut random);
            let words: Vec<u64> = self.words(class, &key).collect();
            let word = |at: usize| words.get(at).copied().unwrap_or(0);
            let steps: Vec<u64> = weak
                .iter()
                .map(|(difference, _)| difference.ones().fold(0, |sum, at| sum ^ word(at)))
                .collect();
            let table = mixer.queues(self.indexes(), cores);
            let mut sum = 0_u64;
            share += worst(&mut (0..flows).map(|step| {
                // Gray code: each flow differs from the one before by one difference.
                if let Some(step) = steps
                    .get(step.trailing_zeros() as usize)
                    .filter(|_| step > 0)
                {
                    sum ^= step;
                }
                table.get(sum as usize).copied().unwrap_or(0)
            }));
            let mut chosen = || ((u64::from(random.next_u32()) * u64::from(cores)) >> 32) as u32;
            chance += worst(&mut (0..1 << WEAK).map(|_| chosen()));
        }
        let mean = |sum: f64, flows: usize| sum / KEYS as f64 / flows as f64;
        (mean(share, flows), mean(chance, 1 << WEAK))
    }
}

/// A basis of the differences that leave a run of index bits, counted from the highest, alone under all
/// keys of the columns.
fn kernel(columns: &[Vec<u64>], first: usize, run: usize) -> Vec<Row> {
    let keys = columns.first().map_or(0, Vec::len);
    // As many keys as suffice for this run, if they are random; the basis is one more key at most.
    let values = keys * run;
    let mut space = Echelon::new(values + columns.len());
    for (at, column) in columns.iter().enumerate() {
        let mut row = Row::zero(values + columns.len());
        for (key, word) in column.iter().enumerate() {
            let ones = (0..run).filter(|bit| word >> (first + bit) & 1 == 1);
            ones.for_each(|bit| row.flip(key * run + bit));
        }
        row.flip(values + at);
        space.insert(&mut row);
    }
    let short = |row: &Row| {
        let mut short = Row::zero(columns.len());
        row.ones().for_each(|at| short.flip(at - values));
        short
    };
    space.led_from(values).map(short).collect()
}

/// The header bit at a place of a class's input.
fn place(class: &Class, at: usize) -> Option<Bit> {
    class.fields.iter().find_map(|field| {
        let at = at.checked_sub(class.offset(*field)?)?;
        (at < field.bits(class.kind)).then_some(Bit {
            side: Side::A,
            part: Part::Field(*field),
            at,
        })
    })
}
