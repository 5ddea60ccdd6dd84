//! Leases: whose value they keep counts, not which number they have.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::value::{fits, same_but, words};
use super::{EntryDifference, Holding};
use crate::lease::Bijection;

/// The sequential side's number for which a worker's number stands, at the end.
#[derive(Default, Debug)]
pub struct Numbers {
    /// by worker and number: the numbers of the sequential side, of any allocator
    forth: HashMap<(u32, u64), Vec<u64>>,
    /// the first numbers of allocators: programs count indices from them
    firsts: BTreeSet<u64>,
    workers: u32,
}

/// Each worker's leases keep what leases of the sequential side keep, one for one.
pub fn compare(
    holding: &Holding,
    bijection: &Bijection,
    numbers: &mut Numbers,
) -> Vec<EntryDifference> {
    let number = |key: &[u8]| {
        let shifted = key.iter().take(8).enumerate();
        shifted.fold(0_u64, |n, (i, b)| n | u64::from(*b) << (8 * i))
    };
    let note = |numbers: &mut Numbers, worker: u32, mine: u64, here: u64| {
        let known = numbers.forth.entry((worker, mine)).or_default();
        if !known.contains(&here) {
            known.push(here);
        }
    };
    let mut free: BTreeMap<&Vec<u8>, Vec<&Vec<u8>>> = BTreeMap::new();
    for (key, value) in &holding.sequential {
        free.entry(value).or_default().push(key);
    }
    // First those that packets have shown to be one. What they keep may have numbers that other allocators leased.
    let by_number: HashMap<u64, (&Vec<u8>, &Vec<u8>)> = { holding.sequential.iter() }
        .map(|(key, value)| (number(key), (key, value)))
        .collect();
    let holders = holding.parallel.iter().flat_map(|(key, holders)| {
        let each = holders.iter();
        each.map(move |(worker, value)| (key, *worker, value))
    });
    let mut rest: Vec<_> = holders.collect();
    rest.retain(|(key, worker, value)| {
        let mine = number(key);
        let shown = bijection.sequential(holding.object, *worker, mine);
        let here = shown.and_then(|n| by_number.get(&n));
        let here = here.filter(|(_, kept)| numbers.same(Some(*worker), kept, value));
        let taken = here.and_then(|(key, kept)| {
            let keys = free.get_mut(kept)?;
            Some(keys.swap_remove(keys.iter().position(|k| k == key)?))
        });
        if let Some(key) = taken {
            note(numbers, *worker, mine, number(key));
        }
        taken.is_none()
    });
    // Of the others each keeps what one of the sequential side keeps, as it is or with such a number in its place.
    free.retain(|_, keys| !keys.is_empty());
    let groups: HashMap<&Vec<u8>, usize> = free.keys().copied().zip(0..).collect();
    let room: Vec<usize> = free.values().map(Vec::len).collect();
    let choices = rest.iter().map(|(key, worker, value)| {
        let mut all = numbers.translated(Some(*worker), value);
        all.retain(|v| v != *value);
        all.push((*value).clone());
        // Packets do not show those of one number.
        let own = by_number.get(&number(key)).map(|(_, kept)| *kept);
        all.sort_by_key(|v| Some(v) != own);
        let known = all.iter().filter_map(|v| groups.get(v).copied());
        known.collect::<Vec<_>>()
    });
    let choices: Vec<Vec<usize>> = choices.collect();
    let places = placed(&choices, &room);
    let mut kept: Vec<(&Vec<u8>, Vec<&Vec<u8>>)> = free.into_iter().collect();
    let mut left = Vec::new();
    for ((key, worker, value), place) in rest.into_iter().zip(places) {
        let keys = place.and_then(|at| Some(&mut kept.get_mut(at)?.1));
        let here = keys.and_then(|keys| {
            let same = keys.iter().position(|k| *k == key);
            (!keys.is_empty()).then(|| keys.swap_remove(same.unwrap_or(0)))
        });
        match here {
            Some(here) => note(numbers, worker, number(key), number(here)),
            None => left.push(EntryDifference {
                object: holding.object,
                key: key.clone(),
                sequential: None,
                parallel: vec![(worker, value.clone())],
                later: holding.later,
            }),
        }
    }
    for (value, keys) in kept {
        left.extend(keys.into_iter().map(|key| EntryDifference {
            object: holding.object,
            key: key.clone(),
            sequential: Some(value.clone()),
            parallel: Vec::new(),
            later: holding.later,
        }));
    }
    left
}

/// Gives each one of its choices a place, of those that have room for so many; as many as can be have one. The earlier of its choices
/// is taken where that is open.
///
/// By augmenting paths (Kuhn, 1955), of which each is the shortest.
fn placed(choices: &[Vec<usize>], room: &[usize]) -> Vec<Option<usize>> {
    let mut places: Vec<Option<usize>> = vec![None; choices.len()];
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); room.len()];
    let full = |within: &[Vec<usize>], group: usize| {
        within.get(group).map_or(0, Vec::len) >= room.get(group).copied().unwrap_or(0)
    };
    // From these no open one can be reached, which stays so.
    let mut dead = vec![false; room.len()];
    for one in 0..choices.len() {
        // Groups that were come to, and who would move there.
        let mut by: HashMap<usize, usize> = HashMap::new();
        let mut waiting = VecDeque::from([one]);
        let mut open = None;
        'looks: while let Some(who) = waiting.pop_front() {
            for &group in choices.get(who).into_iter().flatten() {
                if by.contains_key(&group) || dead.get(group) == Some(&true) {
                    continue;
                }
                by.insert(group, who);
                if !full(&within, group) {
                    open = Some(group);
                    break 'looks;
                }
                waiting.extend(within.get(group).into_iter().flatten());
            }
        }
        if open.is_none() {
            for group in by.keys() {
                if let Some(dead) = dead.get_mut(*group) {
                    *dead = true;
                }
            }
        }
        while let Some(group) = open {
            let Some(&who) = by.get(&group) else { break };
            open = places.get(who).copied().flatten();
            if let Some(old) = open.and_then(|old| within.get_mut(old)) {
                old.retain(|w| *w != who);
            }
            if let Some(place) = places.get_mut(who) {
                *place = Some(group);
            }
            if let Some(new) = within.get_mut(group) {
                new.push(who);
            }
        }
    }
    places
}

impl Numbers {
    /// Of allocators with these first numbers, on so many workers.
    pub fn new(firsts: impl Iterator<Item = u64>, workers: u32) -> Numbers {
        Numbers {
            workers,
            forth: HashMap::new(),
            firsts: firsts.chain([0]).collect(),
        }
    }

    /// Whether no number is leased.
    pub fn is_empty(&self) -> bool {
        self.forth.is_empty()
    }

    /// What a number stands for that one worker leased or, in what all share, any.
    fn known(&self, worker: Option<u32>, number: u64) -> impl Iterator<Item = u64> {
        let workers = match worker {
            Some(worker) => worker..worker + 1,
            None => 0..self.workers,
        };
        let of = move |worker| self.forth.get(&(worker, number)).into_iter().flatten();
        workers.flat_map(of).copied()
    }

    fn stands_for(&self, worker: Option<u32>, number: u64, here: u64) -> bool {
        self.known(worker, number).any(|known| known == here)
    }

    /// Whether two values are the same, up to leased numbers in their words.
    pub fn same(&self, worker: Option<u32>, here: &[u8], there: &[u8]) -> bool {
        same_but(here, there, |here, there| {
            self.stands_for(worker, there, here)
        })
    }

    /// Candidates for a worker's key on the sequential side: one leased number in it replaced, or what counts from the first number.
    pub fn translated(&self, worker: Option<u32>, key: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for (start, bytes, order) in (0..key.len()).flat_map(|at| words(key, at)) {
            let Some(counted) = order(key, start, bytes) else {
                continue;
            };
            for first in &self.firsts {
                let number = counted.checked_add(*first);
                let here = number
                    .into_iter()
                    .flat_map(|number| self.known(worker, number));
                let here = here.filter_map(|here| here.checked_sub(*first));
                all.extend(here.filter_map(|here| fits(key, start, bytes, order, here)));
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

#[cfg(test)]
impl Numbers {
    /// These worker's numbers stand for these of the sequential side, of an allocator that begins with `first`.
    pub fn of(pairs: impl Iterator<Item = (u32, u64, u64)>, first: u64) -> Numbers {
        let mut numbers = Numbers::new([first].into_iter(), 1);
        for (worker, there, here) in pairs {
            let known = numbers.forth.entry((worker, there)).or_default();
            known.push(here);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[test]
    fn as_many_as_can_be_have_a_place() {
        // The first two would like the only place of the third.
        let choices = [vec![0, 1], vec![0, 2], vec![0]];
        assert_eq!(placed(&choices, &[1, 1, 1]), [Some(1), Some(2), Some(0)]);
        // Three for two.
        let found = placed(&[vec![0], vec![0], vec![0]], &[2]);
        assert_eq!(found, [Some(0), Some(0), None]);
        // Each its first where that is open.
        assert_eq!(
            placed(&[vec![1, 0], vec![0, 1]], &[1, 1]),
            [Some(1), Some(0)]
        );
    }
}
