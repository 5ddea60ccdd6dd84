//! Comparison of what both sides did with a packet, up to a bijection over the numbers that their allocators leased.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use millrace_dataplane::packet::Fate;

use crate::lane::Done;
use crate::outcome::Written;
use crate::sums::checksums;
use crate::tuple::word;

/// A lease of the sequential side and the one of the parallel side that stands in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    /// the allocator, by its index in the program
    pub object: usize,
    /// the number on the sequential side
    pub sequential: u64,
    /// the worker that leased it on the parallel side
    pub worker: u32,
    /// the number there
    pub parallel: u64,
    /// what is kept with it on the sequential side
    pub value: Vec<u8>,
    /// and on the parallel side: the same, or the same up to the leases of other allocators
    pub kept: Vec<u8>,
}

/// Values that leases keep on the sequential and the parallel side, and that are the same up to leases of other allocators.
pub type Alike = HashSet<(Vec<u8>, Vec<u8>)>;

/// A difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// the packet's fate
    Verdict,
    /// its bytes where it left
    Bytes,
    /// records that the program left with it
    Records,
    /// packets of one flow may overtake each other
    Order,
    /// no order of one core gives what packets found, by the versions that they read and wrote
    Cycle,
    /// the program had a time for a packet that it cannot have on one core
    Time,
    /// entries of a state object at the end
    State,
    /// a lease of one side stands for two of the other
    Lease,
    /// a packet saw what it cannot have seen of other workers' parts of numbers, or a part is not what packets left in it
    Parts,
}

/// Result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// nothing
    Same,
    /// leased numbers, and nothing else
    Leases(Vec<Pair>),
    /// something else
    Differs(Kind),
}

/// Whether a packet of this fate leaves the function.
#[must_use]
pub fn leaves(fate: Fate) -> bool {
    matches!(fate, Fate::Forwarded(_) | Fate::Flooded | Fate::Passed)
}

/// Compares what both sides did, but for records. `named` is the number that the packet named on the sequential side,
/// and the one on the parallel side that stands for it.
#[must_use]
pub fn compare(
    sequential: &Done,
    parallel: &Done,
    named: Option<(u16, u16)>,
    alike: &Alike,
) -> Found {
    let (one, other) = (&sequential.outcome, &parallel.outcome);
    if one.fate != other.fate {
        return Found::Differs(Kind::Verdict);
    }
    if !leaves(one.fate) || one.bytes == other.bytes {
        return Found::Same;
    }
    match leases((sequential, parallel), named, alike) {
        Some(pairs) => Found::Leases(pairs),
        None => Found::Differs(Kind::Bytes),
    }
}

/// The leases that explain every byte that differs; none if something is left over.
fn leases(
    (sequential, parallel): (&Done, &Done),
    named: Option<(u16, u16)>,
    alike: &Alike,
) -> Option<Vec<Pair>> {
    let (one, other) = (&sequential.outcome, &parallel.outcome);
    if one.bytes.len() != other.bytes.len() {
        return None;
    }
    let sums = checksums(&one.bytes);
    let mut pairs = Vec::new();
    let mut at = 0;
    while at < one.bytes.len() {
        let end = (at + 2).min(one.bytes.len());
        let differs = one.bytes.get(at..end) != other.bytes.get(at..end);
        let here = word(&one.bytes, at).zip(word(&other.bytes, at));
        if named.is_some() && here == named {
            at += 2;
            continue;
        }
        if !differs || sums.iter().any(|s| s.at == at) || as_given(sequential, parallel, at, end) {
            at += 2;
            continue;
        }
        let both = (sequential, parallel);
        let lease = lease_at(both, at, alike).or_else(|| lease_in(both, at, alike));
        let (pair, bytes) = lease?;
        pairs.push(pair);
        at += bytes;
    }
    let right = sums.iter().all(|s| s.agrees(&one.bytes, &other.bytes));
    right.then_some(pairs)
}

/// Whether the function left these bytes as it was given them, which were other ones on each side because an
/// answer was addressed to what the side had leased: that difference was looked at when the lease was written.
fn as_given(sequential: &Done, parallel: &Done, at: usize, end: usize) -> bool {
    let kept = |done: &Done| {
        let given = done.given.get(at..end);
        done.given.len() == done.outcome.bytes.len() && given == done.outcome.bytes.get(at..end)
    };
    kept(sequential) && kept(parallel)
}

/// The lease in one byte of a word of which the other byte is the same on both sides: a number that was added to an address, as where an
/// address of a network is leased.
fn lease_in(
    (sequential, parallel): (&Done, &Done),
    at: usize,
    alike: &Alike,
) -> Option<(Pair, usize)> {
    let same = |at: usize| {
        let byte = |done: &Done| done.outcome.bytes.get(at).copied();
        byte(sequential).is_some() && byte(sequential) == byte(parallel)
    };
    let (byte, other) = match same(at) {
        true => (at + 1, at),
        false => (at, at + 1),
    };
    let whole = same(other).then(|| lease_of((sequential, parallel), byte, 1..=1, alike))?;
    whole.map(|(pair, _)| (pair, 2))
}

/// The lease that was written here, on one side at least as another number than the packet had, and its bytes in
/// the frame.
fn lease_at(both: (&Done, &Done), at: usize, alike: &Alike) -> Option<(Pair, usize)> {
    lease_of(both, at, 2..=4, alike)
}

fn lease_of(
    (sequential, parallel): (&Done, &Done),
    at: usize,
    bytes: RangeInclusive<usize>,
    alike: &Alike,
) -> Option<(Pair, usize)> {
    let here = |done: &Done| {
        let leases = done.outcome.leases.iter();
        let leases = leases.filter(|l| l.at == at && bytes.contains(&l.bytes));
        leases.cloned().collect::<Vec<_>>()
    };
    let same = |a: &Written, b: &Written| {
        a.value == b.value || alike.contains(&(a.value.clone(), b.value.clone()))
    };
    let (ones, others) = (here(sequential), here(parallel));
    ones.iter().find_map(|a| {
        let b = others
            .iter()
            .find(|b| (a.object, a.bytes) == (b.object, b.bytes) && same(a, b))
            .filter(|b| a.changed || b.changed)?;
        let pair = Pair {
            object: a.object,
            sequential: a.number,
            worker: parallel.outcome.worker,
            parallel: b.number,
            value: a.value.clone(),
            kept: b.value.clone(),
        };
        Some((pair, a.bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use millrace_traffic::language::packet;

    /// A packet whose source port became the number that was leased for it.
    fn leased(number: u16, other: Option<&str>) -> Done {
        let given = packet("eth / ip 10.0.0.1 > 192.0.2.1 / udp 1919 > 53").unwrap();
        let text = format!("eth / ip 10.0.0.1 > 192.0.2.1 / udp {number} > 53");
        let bytes = packet(other.unwrap_or(&text)).unwrap();
        let value = b"10.0.0.1 1919".to_vec();
        Done {
            given,
            outcome: Outcome {
                fate: Fate::Forwarded(1),
                bytes,
                records: Vec::new(),
                leases: vec![Written {
                    at: 34,
                    bytes: 2,
                    object: 0,
                    number: u64::from(number),
                    value,
                    changed: number != 1919,
                }],
                worker: 0,
                turn: 0,
                commit: 0,
                time: 0,
                saw: None,
            },
        }
    }

    #[test]
    fn a_lease_may_be_the_number_that_was_there() {
        for (one, other) in [(1919, 1453), (1453, 1919), (1453, 1454)] {
            let Found::Leases(pairs) = compare(
                &leased(one, None),
                &leased(other, None),
                None,
                &Alike::new(),
            ) else {
                panic!("{one} stands for {other}");
            };
            assert_eq!(pairs.len(), 1);
            assert_eq!(pairs[0].sequential, u64::from(one));
            assert_eq!(pairs[0].parallel, u64::from(other));
        }
    }

    /// A packet that left from an address with a leased number as its last byte.
    fn from_pool(number: u8, network: u8) -> Done {
        let text = format!("eth / ip 192.0.{network}.{number} > 192.0.2.1 / udp 1919 > 53");
        let mut done = leased(1919, Some(&text));
        let lease = &mut done.outcome.leases[0];
        (lease.at, lease.bytes, lease.number) = (29, 1, u64::from(number));
        lease.changed = true;
        done
    }

    #[test]
    fn a_leased_number_may_be_a_byte_of_an_address() {
        let Found::Leases(pairs) = compare(&from_pool(7, 3), &from_pool(9, 3), None, &Alike::new())
        else {
            panic!("7 stands for 9");
        };
        assert_eq!((pairs[0].sequential, pairs[0].parallel), (7, 9));
        // The other byte of the word is no lease.
        let found = compare(&from_pool(7, 3), &from_pool(9, 4), None, &Alike::new());
        assert_eq!(found, Found::Differs(Kind::Bytes));
    }

    #[test]
    fn nothing_but_leases_may_differ() {
        let other = leased(1453, Some("eth / ip 10.0.0.1 > 192.0.2.2 / udp 1453 > 53"));
        let found = compare(&leased(1919, None), &other, None, &Alike::new());
        assert_eq!(found, Found::Differs(Kind::Bytes));
        let mut foreign = leased(1453, None);
        foreign.outcome.leases[0].value = b"10.0.0.9 1919".to_vec();
        let found = compare(&leased(1919, None), &foreign, None, &Alike::new());
        assert_eq!(found, Found::Differs(Kind::Bytes));
    }
}
