//! Cubes: conjunctions of intervals over the words that name a flow, as rules of filters are.

use crate::diagram::{Full, Id, Store};
use crate::field::{Base, Var, bit, ip};

/// Where the IP header is that words are of.
pub const IP: u16 = 14;

/// The words, in the order of diagrams.
pub const WORDS: usize = 5;
/// The protocol's place.
pub const PROTOCOL: usize = 0;
/// The destination port's.
pub const TO: usize = 3;
/// The source port's.
pub const FROM: usize = 4;

/// The variable of a word.
#[must_use]
pub fn var(word: usize) -> Var {
    match word {
        PROTOCOL => ip(IP, bit::PROTOCOL),
        1 => ip(IP, bit::DESTINATION),
        2 => ip(IP, bit::SOURCE),
        TO => Var::Bits(Base::Upper(IP), 16, 16),
        _ => Var::Bits(Base::Upper(IP), 0, 16),
    }
}

/// The word of a variable.
#[must_use]
pub fn word(of: Var) -> Option<usize> {
    (0..WORDS).find(|w| var(*w) == of)
}

/// Intervals of all words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cube(
    /// by word: the lowest and the highest value
    pub [(u64, u64); WORDS],
);

impl Cube {
    /// All packets.
    #[must_use]
    pub fn all() -> Self {
        Self(std::array::from_fn(|w| (0, var(w).most())))
    }

    /// A word's interval.
    #[must_use]
    pub fn get(&self, word: usize) -> (u64, u64) {
        self.0.get(word).copied().unwrap_or((0, 0))
    }

    /// The part in which a word lies in an interval.
    #[must_use]
    pub fn within(mut self, word: usize, low: u64, high: u64) -> Option<Self> {
        let slot = self.0.get_mut(word)?;
        *slot = (slot.0.max(low), slot.1.min(high));
        (slot.0 <= slot.1).then_some(self)
    }

    /// What two have in common.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        (0..WORDS).try_fold(*self, |made, word| {
            let (low, high) = other.get(word);
            made.within(word, low, high)
        })
    }

    /// Whether a word may have any value.
    #[must_use]
    pub fn whole(&self, word: usize) -> bool {
        self.get(word) == (0, var(word).most())
    }

    /// Whether two have packets in common.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        // Destinations differ most.
        let ([proto, to, from, dport, sport], [p, t, f, d, s]) = (&self.0, &other.0);
        let meet = |a: &(u64, u64), b: &(u64, u64)| a.0 <= b.1 && b.0 <= a.1;
        meet(to, t) && meet(from, f) && meet(dport, d) && meet(proto, p) && meet(sport, s)
    }

    /// Whether all packets of another are its own.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .all(|(a, b)| a.0 <= b.0 && b.1 <= a.1)
    }

    /// Whether a packet is its own.
    #[must_use]
    pub fn has(&self, point: &[u64; WORDS]) -> bool {
        self.0
            .iter()
            .zip(point)
            .all(|(a, p)| a.0 <= *p && *p <= a.1)
    }

    /// `yes` for packets of the cube, else `no`.
    ///
    /// # Errors
    /// The budget is spent.
    pub fn diagram(&self, store: &mut Store, yes: Id, no: Id) -> Result<Id, Full> {
        (0..WORDS)
            .rev()
            .try_fold(yes, |made, word| match self.whole(word) {
                true => Ok(made),
                false => store.within(var(word), &[self.get(word)], made, no),
            })
    }
}

/// Prefixes of which an interval consists: values and masks.
#[must_use]
pub fn prefixes(low: u64, high: u64, width: u32) -> Vec<(u64, u64)> {
    let all = u64::MAX >> (64 - width);
    let mut found = Vec::new();
    let mut at = low;
    loop {
        // The largest block that begins here and does not end behind the interval.
        let mut bits = at.trailing_zeros().min(width);
        while bits > 0 && at | (all >> (width - bits)) > high {
            bits -= 1;
        }
        let free = if bits == 0 { 0 } else { all >> (width - bits) };
        found.push((at, all & !free));
        let last = at | free;
        if last >= high {
            return found;
        }
        at = last + 1;
    }
}
