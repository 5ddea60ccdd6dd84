//! Attacks by somebody who knows the program, but not the key.
//!
//! For a key drawn uniformly from the space, two packets whose hash inputs differ by d meet in a table
//! entry with probability exactly 2^-r(d), where r(d) is the rank of the map from the key to the index of
//! d: the map is linear, and each of its 2^r(d) values as likely as any other. Differences in the inner
//! bits of a field have as much rank as the index has bits; at the edges, next to what is cancelled or
//! tied to another port's key, windows are cut and r(d) is less.

use rand::rand_core::Rng;

use super::case::{Bit, Part, Side};
use super::class::{Class, ClassId};
use super::mixer::Mixer;
use super::solve::fixed;
use super::space::Space;
use crate::gf2::{Echelon, Row, word_rank};

/// Independent differences whose combinations an attacker takes: 512 flows.
const WEAK: usize = 9;
/// Keys over which the share of the worst queue is averaged.
const KEYS: usize = 8;
/// With this many more bits than a random linear map needs to be injective it is, but for 2^-64.
const SURE: usize = 64;

/// Information that packets of one class reveal.
#[derive(Clone, PartialEq, Debug)]
pub struct Exposure {
    /// header bits that must be guessed for a second flow that shares the table entry of a first: the
    /// least r(d), over the differences that leave some run of index bits alone under every key
    pub entry_bits: usize,
    /// the same for sharing its core, with the table of [`Keys::queues`](super::Keys::queues): the base-2
    /// logarithm of how many flows it takes on average
    pub core_bits: f64,
    /// the weakest differences, at most nine, independent, with their r(d), weakest first; none where no
    /// difference leaves an index bit alone
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
    /// Information that packets of a class reveal; none for a class without a bit that reaches the index.
    #[must_use]
    pub fn exposure(&self, id: ClassId) -> Option<Exposure> {
        let drawn = self.drawn();
        self.exposed(id, &drawn, &self.invariants())
    }

    /// The same for every class, with the keys drawn once.
    #[must_use]
    pub fn exposures(&self) -> Vec<Option<Exposure>> {
        let (drawn, invariants) = (self.drawn(), self.invariants());
        let mut found: Vec<Option<Exposure>> = Vec::new();
        for (id, class) in self.classes().iter().enumerate() {
            // Kinds with the same fields and the same invariants are alike but for their name.
            let like = self
                .classes()
                .iter()
                .take(id)
                .zip(&invariants)
                .position(|(c, d)| {
                    (c.port, &c.fields, c.bits(), Some(d))
                        == (class.port, &class.fields, class.bits(), invariants.get(id))
                });
            let known = like.and_then(|place| found.get(place).cloned());
            found.push(known.unwrap_or_else(|| self.exposed(id, &drawn, &invariants)));
        }
        found
    }

    /// Keys as they are drawn for use.
    fn drawn(&self) -> Vec<(Row, Mixer)> {
        let mut random = fixed();
        (0..KEYS).map(|_| self.best(&mut random)).collect()
    }

    fn exposed(
        &self,
        id: ClassId,
        drawn: &[(Row, Mixer)],
        invariants: &[usize],
    ) -> Option<Exposure> {
        let class = self.classes().get(id)?;
        if self.table_rank(id) == 0 {
            return None;
        }
        let (weak, meeting) = self.weakest(class);
        let (entry_bits, core_bits) = self.bits_to_guess(&weak);
        let named = |(difference, rank): &(Row, usize)| Difference {
            bits: difference
                .ones()
                .filter_map(|at| place(class, at))
                .collect(),
            rank: *rank,
        };
        let invariant = invariants.get(id).copied().unwrap_or(0);
        let (share, random_share) = self.shares(class, &weak, drawn);
        Some(Exposure {
            entry_bits,
            core_bits,
            weakest: weak.iter().map(named).collect(),
            blind: (invariant + meeting).saturating_sub(class.bits()),
            share: (!weak.is_empty()).then_some(share),
            random_share,
        })
    }

    /// The weakest differences of a class with their ranks, weakest first, and the dimension of those that
    /// reach no index at all.
    fn weakest(&self, class: &Class) -> (Vec<(Row, usize)>, usize) {
        let index = self.index_bits();
        let columns = Columns::new(self, class);
        let single: Vec<Vec<Row>> = (0..index).map(|bit| columns.left_alone(bit)).collect();
        let meeting = single.iter().skip(1).enumerate().fold(
            single.first().cloned().unwrap_or_default(),
            |all, (bit, _)| columns.of_those(&all, bit + 1),
        );
        let mut known = Echelon::new(class.bits());
        for difference in &meeting {
            known.insert(&mut difference.clone());
        }
        // For runs of one index bit, of two, and so on, by their first bit: the differences that leave the
        // run alone, without those that leave everything alone.
        let fresh = |all: &Vec<Row>| -> Vec<Row> {
            let mut space = known.clone();
            let fresh = all.iter().filter(|d| space.insert(&mut (*d).clone()));
            fresh.cloned().collect()
        };
        let mut runs: Vec<Vec<Vec<Row>>> = vec![single.iter().map(fresh).collect()];
        for run in 2..index {
            let shorter = runs.last().into_iter().flatten();
            let longer = shorter.take(index - run + 1).enumerate();
            let longer = longer.map(|(first, all)| columns.of_those(all, first + run - 1));
            let longer = longer.collect();
            runs.push(longer);
        }
        // The longer the run, the less the rank.
        let mut weak: Vec<(Row, usize)> = Vec::new();
        for difference in runs.iter().rev().flatten().flatten() {
            if weak.len() < WEAK && known.insert(&mut difference.clone()) {
                weak.push((difference.clone(), columns.rank(difference)));
            }
        }
        weak.sort_by_key(|(_, rank)| *rank);
        (weak, meeting.len())
    }

    /// [`Exposure::entry_bits`] and [`Exposure::core_bits`], from the weakest differences.
    fn bits_to_guess(&self, weak: &[(Row, usize)]) -> (usize, f64) {
        let entry_bits = weak.first().map_or(self.index_bits(), |(_, rank)| *rank);
        let cores = f64::from(self.target().cores.max(1));
        let entry = (-(entry_bits as f64)).exp2();
        // Either the entry is the same, or it is another and leads to the same core by chance.
        (entry_bits, -(entry + (1.0 - entry) / cores).log2())
    }

    /// [`Exposure::entry_bits`] and [`Exposure::core_bits`] of a class, without the shares that take keys to be
    /// drawn; none for a class without a bit that reaches the index.
    #[must_use]
    pub fn guess(&self, id: ClassId) -> Option<(usize, f64)> {
        let class = self.classes().get(id)?;
        if self.table_rank(id) == 0 {
            return None;
        }
        Some(self.bits_to_guess(&self.weakest(class).0))
    }

    /// The mean share of the worst queue, and the same for a function drawn at random, when there is a
    /// flow for every combination of the differences.
    fn shares(&self, class: &Class, weak: &[(Row, usize)], drawn: &[(Row, Mixer)]) -> (f64, f64) {
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
        for (key, mixer) in drawn {
            let words: Vec<u64> = self.words(class, key).collect();
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
        let mean = |sum: f64, flows: usize| sum / drawn.len() as f64 / flows as f64;
        (mean(share, flows), mean(chance, 1 << WEAK))
    }
}

/// For each bit of a class's input, the index under keys that together tell apart what any key does.
struct Columns {
    keys: usize,
    columns: Vec<Vec<u64>>,
}

impl Columns {
    fn new(space: &Space, class: &Class) -> Self {
        let mut columns = vec![Vec::new(); class.bits()];
        let mut record = |key: &Row| {
            for (column, word) in columns.iter_mut().zip(space.words(class, key)) {
                column.push(word);
            }
        };
        // The basis, or random keys where fewer do.
        let enough = class.bits() + SURE;
        let keys = space.basis.len().min(enough);
        if keys < enough {
            space.basis.iter().for_each(&mut record);
        } else {
            let mut random = fixed();
            (0..keys).for_each(|_| record(&space.uniform(&mut random)));
        }
        Self { keys, columns }
    }

    /// The rank of the index of a difference.
    fn rank(&self, difference: &Row) -> usize {
        let mut words = vec![0; self.keys];
        for column in difference.ones().filter_map(|at| self.columns.get(at)) {
            for (word, other) in words.iter_mut().zip(column) {
                *word ^= other;
            }
        }
        word_rank(words)
    }

    /// A basis of the differences that leave an index bit, counted from the lowest, alone under all keys.
    fn left_alone(&self, bit: usize) -> Vec<Row> {
        let bits = self.columns.len();
        let unit = |at: usize| {
            let mut row = Row::zero(bits);
            row.flip(at);
            row
        };
        let all: Vec<Row> = (0..bits).map(unit).collect();
        self.of_those(&all, bit)
    }

    /// A basis of those among the sums of some independent differences.
    fn of_those(&self, some: &[Row], bit: usize) -> Vec<Row> {
        // What each does to the bit under each key, and behind that its number.
        let mut space = Echelon::new(self.keys + some.len());
        for (number, difference) in some.iter().enumerate() {
            let mut row = Row::zero(self.keys + some.len());
            for column in difference.ones().filter_map(|at| self.columns.get(at)) {
                let ones = (0..).zip(column).filter(|(_, word)| **word >> bit & 1 == 1);
                ones.for_each(|(key, _)| row.flip(key));
            }
            row.flip(self.keys + number);
            space.insert(&mut row);
        }
        let sum = |numbers: &Row| {
            let mut sum = Row::zero(self.columns.len());
            let numbers = numbers.ones().filter_map(|at| at.checked_sub(self.keys));
            numbers.filter_map(|n| some.get(n)).for_each(|d| sum.add(d));
            sum
        };
        space.led_from(self.keys).map(sum).collect()
    }
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
