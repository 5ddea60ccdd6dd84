//! Cubes: conjunctions of intervals over the words that name a flow, as rules of filters are.

use millrace_synth::diagram::{Full, Id, Store};
use millrace_synth::field::{Base, Var, bit, ip};

use crate::openflow::{Field, Match};
use crate::outcome::IP;

/// The words, in the order of diagrams.
pub(crate) const WORDS: usize = 5;
/// The protocol's place.
pub(crate) const PROTOCOL: usize = 0;
/// The destination port's.
pub(crate) const TO: usize = 3;
/// The source port's.
pub(crate) const FROM: usize = 4;

/// The variable of a word.
pub(crate) fn var(word: usize) -> Var {
    match word {
        PROTOCOL => ip(IP, bit::PROTOCOL),
        1 => ip(IP, bit::DESTINATION),
        2 => ip(IP, bit::SOURCE),
        TO => Var::Bits(Base::Upper(IP), 16, 16),
        _ => Var::Bits(Base::Upper(IP), 0, 16),
    }
}

/// The word of a variable.
pub(crate) fn word(of: Var) -> Option<usize> {
    (0..WORDS).find(|w| var(*w) == of)
}

/// The field of a word.
pub(crate) fn field(word: usize) -> Field {
    match word {
        PROTOCOL => Field::IpProto,
        1 => Field::Ipv4Dst,
        2 => Field::Ipv4Src,
        TO => Field::PortDst,
        _ => Field::PortSrc,
    }
}

/// Intervals of all words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cube(pub(crate) [(u64, u64); WORDS]);

impl Cube {
    pub(crate) fn all() -> Self {
        Self(std::array::from_fn(|w| (0, var(w).most())))
    }

    pub(crate) fn get(&self, word: usize) -> (u64, u64) {
        self.0.get(word).copied().unwrap_or((0, 0))
    }

    /// The part in which a word lies in an interval.
    pub(crate) fn within(mut self, word: usize, low: u64, high: u64) -> Option<Self> {
        let slot = self.0.get_mut(word)?;
        *slot = (slot.0.max(low), slot.1.min(high));
        (slot.0 <= slot.1).then_some(self)
    }

    pub(crate) fn and(&self, other: &Self) -> Option<Self> {
        (0..WORDS).try_fold(*self, |made, word| {
            let (low, high) = other.get(word);
            made.within(word, low, high)
        })
    }

    pub(crate) fn whole(&self, word: usize) -> bool {
        self.get(word) == (0, var(word).most())
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }

    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .all(|(a, b)| a.0 <= b.0 && b.1 <= a.1)
    }

    pub(crate) fn has(&self, point: &[u64; WORDS]) -> bool {
        self.0
            .iter()
            .zip(point)
            .all(|(a, p)| a.0 <= *p && *p <= a.1)
    }

    /// `yes` for packets of the cube, else `no`.
    pub(crate) fn diagram(&self, store: &mut Store, yes: Id, no: Id) -> Result<Id, Full> {
        (0..WORDS)
            .rev()
            .try_fold(yes, |made, word| match self.whole(word) {
                true => Ok(made),
                false => store.within(var(word), &[self.get(word)], made, no),
            })
    }
}

/// Prefixes of which an interval consists: values and masks.
pub(crate) fn prefixes(low: u64, high: u64, width: u32) -> Vec<(u64, u64)> {
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

/// The matches of a field of which an interval consists; nothing where all of it is.
pub(crate) fn matches(
    field: Field,
    low: u64,
    high: u64,
    exact: bool,
) -> Option<Vec<Option<Match>>> {
    if (low, high) == (0, field.all()) {
        return Some(vec![None]);
    }
    if exact {
        if high - low > 255 {
            return None;
        }
        return Some((low..=high).map(|v| Some(Match::exact(field, v))).collect());
    }
    let all = prefixes(low, high, field.width()).into_iter();
    Some(
        all.map(|(value, mask)| Some(Match { field, value, mask }))
            .collect(),
    )
}
