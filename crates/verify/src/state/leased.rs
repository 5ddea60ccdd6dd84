//! Leases: whose value they keep counts, not which number they have.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::value::{fits, words};
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
    let mut free: BTreeMap<&Vec<u8>, Vec<&Vec<u8>>> = BTreeMap::new();
    for (key, value) in &holding.sequential {
        free.entry(value).or_default().push(key);
    }
    let mut left = Vec::new();
    for (key, holders) in &holding.parallel {
        for (worker, value) in holders {
            let mine = number(key);
            let shown = bijection.sequential(holding.object, *worker, mine);
            let keys = free.get_mut(value);
            let at = keys.as_ref().and_then(|keys| {
                let stands = |k: &&Vec<u8>| shown == Some(number(k));
                let same = |k: &&Vec<u8>| *k == key;
                let position = |f: &dyn Fn(&&Vec<u8>) -> bool| keys.iter().position(f);
                let any = (!keys.is_empty()).then_some(0);
                position(&stands).or_else(|| position(&same)).or(any)
            });
            match keys.zip(at) {
                Some((keys, at)) => {
                    let here = number(keys.swap_remove(at));
                    let known = numbers.forth.entry((*worker, mine)).or_default();
                    if !known.contains(&here) {
                        known.push(here);
                    }
                }
                None => left.push(EntryDifference {
                    object: holding.object,
                    key: key.clone(),
                    sequential: None,
                    parallel: vec![(*worker, value.clone())],
                    later: holding.later,
                }),
            }
        }
    }
    for (value, keys) in free {
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
        if here == there {
            return true;
        }
        if self.is_empty() || here.len() != there.len() {
            return false;
        }
        let mut at = 0;
        while at < here.len() {
            if here.get(at) == there.get(at) {
                at += 1;
                continue;
            }
            // The widest word around the byte that is a leased number on both sides.
            let explained = words(here, at).find_map(|(start, bytes, order)| {
                let (a, b) = (order(here, start, bytes)?, order(there, start, bytes)?);
                self.stands_for(worker, b, a).then_some(start + bytes)
            });
            match explained {
                Some(end) => at = end,
                None => return false,
            }
        }
        true
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
