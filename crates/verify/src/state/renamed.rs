//! Entries of both sides that are one another's, up to leased numbers in their keys and values.
//!
//! A key may hold a number that another lease has on the other side: then the same key names two entries. So the pairs are found as a
//! matching (augmenting paths, breadth first; Hopcroft and Karp: An n^5/2 algorithm, SIAM J. Comput. 1973, without its phases), begun
//! with the pairs of equal keys.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::Numbers;

/// An entry of one side.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// whose numbers are in it; any worker's where all share it
    pub worker: Option<u32>,
    pub key: &'a Vec<u8>,
    pub value: &'a Vec<u8>,
}

/// The keys of entries of either side that stand for none of the other.
pub fn unmatched(
    sequential: &[Entry<'_>],
    parallel: &[Entry<'_>],
    numbers: &Numbers,
) -> BTreeSet<Vec<u8>> {
    let mut pairs = Pairs {
        sequential,
        parallel,
        numbers,
        place: (sequential.iter().enumerate())
            .map(|(at, entry)| (entry.key.as_slice(), at))
            .collect(),
        of: vec![None; sequential.len()],
        stands: vec![None; parallel.len()],
        dead: vec![false; sequential.len()],
    };
    let mut left = BTreeSet::new();
    let mut alone = Vec::new();
    for (at, entry) in parallel.iter().enumerate() {
        match pairs.fitting(at, entry.key) {
            Some(partner) => _ = pairs.take(partner, at),
            None => alone.push(at),
        }
    }
    for at in alone {
        if (numbers.is_empty() || !pairs.augment(at))
            && let Some(entry) = parallel.get(at)
        {
            left.insert(entry.key.clone());
        }
    }
    let without = pairs.of.iter().zip(sequential);
    let without = without.filter(|(of, _)| of.is_none());
    left.extend(without.map(|(_, entry)| entry.key.clone()));
    left
}

struct Pairs<'a> {
    sequential: &'a [Entry<'a>],
    parallel: &'a [Entry<'a>],
    numbers: &'a Numbers,
    /// where on the sequential side a key is
    place: HashMap<&'a [u8], usize>,
    /// for each entry of the sequential side, the one of the parallel side that stands for it
    of: Vec<Option<usize>>,
    /// for each entry of the parallel side, the one of the sequential side for which it stands
    stands: Vec<Option<usize>>,
    /// entries of the sequential side from which no free one can be reached, which stays so
    dead: Vec<bool>,
}

impl Pairs<'_> {
    /// The entry of the sequential side with this key, if its value is that of the parallel side's entry.
    fn fitting(&self, there: usize, key: &[u8]) -> Option<usize> {
        let at = *self.place.get(key)?;
        let (here, there) = (self.sequential.get(at)?, self.parallel.get(there)?);
        let same = self.numbers.same(there.worker, here.value, there.value);
        same.then_some(at)
    }

    /// Makes these a pair; for what the entry of the parallel side stood before.
    fn take(&mut self, here: usize, there: usize) -> Option<usize> {
        *self.of.get_mut(here)? = Some(there);
        self.stands.get_mut(there)?.replace(here)
    }

    /// All that an entry of the parallel side may stand for.
    fn candidates(&self, there: usize) -> Vec<usize> {
        let Some(entry) = self.parallel.get(there) else {
            return Vec::new();
        };
        let translated = self.numbers.translated(entry.worker, entry.key);
        let keys = translated.iter().chain([entry.key]);
        keys.filter_map(|key| self.fitting(there, key)).collect()
    }

    /// Finds an entry for this one of the parallel side, others moving to other ones; whether there is one.
    fn augment(&mut self, start: usize) -> bool {
        // For each entry of the sequential side that was reached: the one of the parallel side from which.
        let mut from: HashMap<usize, usize> = HashMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(there) = next.pop_front() {
            for here in self.candidates(there) {
                if from.contains_key(&here) || self.dead.get(here) == Some(&true) {
                    continue;
                }
                from.insert(here, there);
                match self.of.get(here).copied().flatten() {
                    Some(partner) => next.push_back(partner),
                    None => {
                        // Each on the way moves to where it was found.
                        let mut free = Some(here);
                        while let Some(here) = free {
                            free = from.get(&here).and_then(|there| self.take(here, *there));
                        }
                        return true;
                    }
                }
            }
        }
        for here in from.into_keys() {
            if let Some(dead) = self.dead.get_mut(here) {
                *dead = true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::Numbers;
    use super::*;

    fn unmatched_of(
        leases: &[(u64, u64)],
        here: &[(u32, &str)],
        there: &[(u32, &str)],
    ) -> Vec<u32> {
        let owned = |side: &[(u32, &str)]| -> Vec<(Vec<u8>, Vec<u8>)> {
            let bytes = |(key, value): &(u32, &str)| {
                (key.to_le_bytes().to_vec(), value.as_bytes().to_vec())
            };
            side.iter().map(bytes).collect()
        };
        let (here, there) = (owned(here), owned(there));
        let numbers = Numbers::of(leases.iter().map(|(here, there)| (0, *there, *here)), 1000);
        let of = |(key, value)| Entry {
            worker: Some(0),
            key,
            value,
        };
        let one: Vec<Entry<'_>> = here.iter().map(|(k, v)| of((k, v))).collect();
        let other: Vec<Entry<'_>> = there.iter().map(|(k, v)| of((k, v))).collect();
        let left = unmatched(&one, &other, &numbers);
        (left.iter())
            .map(|key| u32::from_le_bytes(key.as_slice().try_into().unwrap()))
            .collect()
    }

    const LEASES: [(u64, u64); 3] = [(1000, 1001), (1001, 1002), (1002, 1000)];

    #[test]
    fn one_key_names_two_leases_entries() {
        let here = [(1000, "a"), (1001, "b"), (1002, "c")];
        let there = [(1001, "a"), (1002, "b"), (1000, "c")];
        assert!(unmatched_of(&LEASES, &here, &there).is_empty());
        assert_eq!(unmatched_of(&[], &here, &there), [1000, 1001, 1002]);
        // One entry has another value.
        let wrong = [(1001, "a"), (1002, "x"), (1000, "c")];
        assert_eq!(unmatched_of(&LEASES, &here, &wrong), [1001, 1002]);
        // One is there twice, one is missing.
        let wrong = [(1001, "a"), (1002, "b"), (1000, "b")];
        assert_eq!(unmatched_of(&LEASES, &here, &wrong), [1000, 1002]);
    }

    #[test]
    fn pairs_of_equal_keys_are_left_where_others_need_them() {
        let here = [(1000, "a"), (1001, "a"), (1002, "b")];
        let there = [(1000, "b"), (1001, "a"), (1002, "a")];
        assert!(unmatched_of(&LEASES, &here, &there).is_empty());
    }

    #[test]
    fn indices_count_from_the_first_number() {
        let here = [(0, "a"), (1, "b"), (2, "c")];
        let there = [(1, "a"), (2, "b"), (0, "c")];
        assert!(unmatched_of(&LEASES, &here, &there).is_empty());
    }

    #[test]
    fn long_ways_are_found() {
        let leases: Vec<(u64, u64)> = (0..5000).map(|n| (2000 + n, 2001 + n)).collect();
        let all = |shift: u32| -> Vec<(u32, &str)> {
            (0..5000)
                .map(|n| (2000 + n + shift, if n == 0 { "first" } else { "same" }))
                .collect()
        };
        assert!(unmatched_of(&leases, &all(0), &all(1)).is_empty());
    }
}
