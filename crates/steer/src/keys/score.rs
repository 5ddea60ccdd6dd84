//! Comparison of two keys by how well they spread packets.
//!
//! Full rank alone says that every index occurs, over all inputs; real traffic varies in a few bits: the
//! hosts of one subnet, the ports of one pair of hosts. A good key has full rank on those as well, and so
//! have the high bits of the permuted index, which choose the queue when no load is known.

use std::cmp::Ordering;

use super::class::Class;
use super::mixer::Mixer;
use super::space::Space;
use crate::fields::Field;
use crate::gf2::{Row, word_rank};

/// Of the last bits of an address, how many may be all that differs: a handful of neighbours, a /24, a /16, a /8.
const HOSTS: [usize; 4] = [4, 8, 16, 24];
/// Index bits, from the highest, among whose combinations the one of least weight is sought; 2^9 of them.
const COMBINED: usize = 9;

/// First criterion of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Score {
    /// the least rank of a class that shall spread
    rank: usize,
    /// minus what the parts of fields lack of the rank that their size allows
    parts: isize,
    /// the rest, when it was needed
    rest: Option<(usize, usize)>,
}

impl Score {
    pub fn of(space: &Space, (unknowns, mixer): &(Row, Mixer)) -> Self {
        let mut found = Self {
            rank: usize::MAX,
            parts: 0,
            rest: None,
        };
        for class in distinct(space) {
            let words: Vec<u64> = space.words(class, unknowns).collect();
            found.rank = found.rank.min(word_rank(words.iter().copied()));
            let mixed: Vec<u64> = words.iter().map(|word| mixer.apply(*word)).collect();
            for part in parts(class) {
                found.parts -= lacking(space, mixed.get(part).unwrap_or_default());
            }
        }
        found
    }

    /// Whether `other` is better than `mine`, whose score this is; then this becomes the other's.
    pub fn improved_by(
        &mut self,
        space: &Space,
        mine: &(Row, Mixer),
        other: &(Row, Mixer),
    ) -> bool {
        let mut theirs = Self::of(space, other);
        let order = (theirs.rank, theirs.parts).cmp(&(self.rank, self.parts));
        let better = order.then_with(|| {
            let known = *self.rest.get_or_insert_with(|| rest(space, &mine.0));
            theirs
                .rest
                .insert(rest(space, &other.0))
                .cmp(&&mut { known })
        }) == Ordering::Greater;
        if better {
            *self = theirs;
        }
        better
    }
}

/// The classes that shall spread; of those whose inputs are laid out alike, the first.
fn distinct(space: &Space) -> impl Iterator<Item = &Class> {
    let spread = || space.classes().iter().filter(|class| class.spread);
    let layout = |class: &Class| (class.port, class.bits(), class.fields.clone());
    spread().enumerate().filter_map(move |(place, class)| {
        let mut before = spread().take(place);
        let known = before.any(|other| layout(other) == layout(class));
        (!known).then_some(class)
    })
}

/// The parts of a class's input that often vary alone, as runs of bits.
fn parts(class: &Class) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    class.fields.iter().flat_map(|field| {
        let first = class.offset(*field).unwrap_or(0);
        let bits = field.bits(class.kind);
        let ends: &[usize] = match (field, bits) {
            (Field::SourcePort | Field::DestinationPort, _) => &[16],
            // The subnet in front of the interface identifier, and that.
            (_, 128) => &[64, 128],
            _ => &[32],
        };
        let part =
            move |end: usize, size: usize| first + end.saturating_sub(size)..first + end.min(bits);
        let hosts: &[usize] = if bits < 32 { &[16] } else { &HOSTS };
        ends.iter()
            .filter(move |_| bits > 0)
            .flat_map(move |end| hosts.iter().map(move |size| part(*end, *size)))
    })
}

/// Deficit of a part's rank against the possible one, in the index and in the bits that choose the queue;
/// the permutation changes no rank of the index.
fn lacking(space: &Space, words: &[u64]) -> isize {
    let (index, queue) = (space.index_bits(), space.target().needed());
    // A part that the constraints cancel lacks the same under every key, which changes no comparison.
    let lack = |bits: usize, shift: usize| {
        let rank = word_rank(words.iter().map(|word| word >> shift));
        words.len().min(bits) as isize - rank as isize
    };
    lack(index, 0) + lack(queue.min(index), index - queue.min(index))
}

/// The least number of input bits that a combination of index bits depends on, and how many reach the
/// index, over the classes.
fn rest(space: &Space, unknowns: &Row) -> (usize, usize) {
    let (mut distance, mut reaching) = (usize::MAX, 0);
    let index = space.index_bits();
    let combined = index.min(COMBINED);
    for class in distinct(space) {
        let words: Vec<u64> = space.words(class, unknowns).collect();
        reaching += words.iter().filter(|word| **word != 0).count();
        // For each high index bit, the input bits that it depends on.
        let column = |bit: usize| {
            let mut column = Row::zero(words.len());
            let ones = (0..).zip(&words).filter(|(_, word)| **word >> bit & 1 == 1);
            ones.for_each(|(at, _)| column.flip(at));
            column
        };
        let columns: Vec<Row> = (index - combined..index).map(column).collect();
        let mut sum = Row::zero(words.len());
        // Gray code: each combination differs from the one before in one column.
        for step in 1..1_usize << combined {
            if let Some(column) = columns.get(step.trailing_zeros() as usize) {
                sum.add(column);
            }
            let weight = sum.count();
            // A combination that depends on nothing lacks rank, which was compared before.
            if weight > 0 {
                distance = distance.min(weight);
            }
        }
    }
    (distance, reaching)
}
