//! Entries by their keys, as sets.

use std::collections::BTreeSet;

use super::renamed::{self, Entry};
use super::{EntryDifference, Holding, Numbers};

/// Each entry of the sequential side is at one worker, up to leased numbers in its key and value, and there is no other one.
pub fn compare(holding: &Holding, numbers: &Numbers) -> Vec<EntryDifference> {
    let sequential: Vec<Entry<'_>> = (holding.sequential.iter())
        .map(|(key, value)| Entry {
            worker: None,
            key,
            value,
        })
        .collect();
    let one = |(key, holders): (&'_ Vec<u8>, &'_ Vec<(u32, Vec<u8>)>)| match holders.as_slice() {
        [_] => None,
        _ => Some(key.clone()),
    };
    let mut left: BTreeSet<Vec<u8>> = holding.parallel.iter().filter_map(one).collect();
    let parallel: Vec<Entry<'_>> = (holding.parallel.iter())
        .filter_map(|(key, holders)| match holders.as_slice() {
            [(worker, value)] => Some(Entry {
                worker: holding.whose(*worker),
                key,
                value,
            }),
            _ => None,
        })
        .collect();
    left.extend(renamed::unmatched(&sequential, &parallel, numbers));
    left.iter().map(|key| holding.differs(key)).collect()
}

/// Each worker has every entry of the sequential side, and no other one.
pub fn same_everywhere(holding: &Holding) -> Vec<EntryDifference> {
    let differs = |key: &&Vec<u8>| {
        let here = holding.sequential.get(*key);
        let there = holding.parallel.get(*key).map_or(&[][..], Vec::as_slice);
        let all = there.len() == holding.workers as usize;
        !(all && there.iter().all(|(_, value)| Some(value) == here))
    };
    let keys = holding.keys().filter(differs);
    keys.map(|key| holding.differs(key)).collect()
}
