//! Elements by their index.

use std::collections::{BTreeSet, HashMap};

use millrace_dataplane::module::KeyValue;

use super::renamed::{self, Entry};
use super::{EntryDifference, Holding, Numbers};

/// An element that packets changed was changed at one worker, to what the sequential side has, up to leased numbers in its index
/// and value; all others are everywhere as they were at start.
pub fn compare(holding: &Holding, base: &[KeyValue], numbers: &Numbers) -> Vec<EntryDifference> {
    let base: HashMap<&Vec<u8>, &Vec<u8>> = base.iter().map(|(k, v)| (k, v)).collect();
    let changed = |key: &Vec<u8>, value: &Vec<u8>| base.get(key).copied() != Some(value);
    let sequential: Vec<Entry<'_>> = (holding.sequential.iter())
        .filter(|(key, value)| changed(key, value))
        .map(|(key, value)| Entry {
            worker: None,
            key,
            value,
        })
        .collect();
    let mut left = BTreeSet::new();
    let mut parallel = Vec::new();
    for (key, holders) in &holding.parallel {
        let mut others = holders.iter().filter(|(_, value)| changed(key, value));
        match (others.next(), others.next()) {
            (None, _) => {}
            (Some((worker, value)), None) => parallel.push(Entry {
                worker: holding.whose(*worker),
                key,
                value,
            }),
            _ => _ = left.insert(key.clone()),
        }
    }
    left.extend(renamed::unmatched(&sequential, &parallel, numbers));
    left.iter().map(|key| holding.differs(key)).collect()
}
