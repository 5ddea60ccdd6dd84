//! Elements by their index.

use std::collections::HashMap;

use millrace_dataplane::module::KeyValue;

use super::{EntryDifference, Holding, Numbers};

/// An element that packets changed was changed at one worker, to what the sequential side has; all others are
/// everywhere as they were at start.
pub fn compare(holding: &Holding, base: &[KeyValue], numbers: &Numbers) -> Vec<EntryDifference> {
    let base: HashMap<&Vec<u8>, &Vec<u8>> = base.iter().map(|(k, v)| (k, v)).collect();
    let differs = |key: &&Vec<u8>| {
        let before = base.get(*key).copied();
        let here = holding.sequential.get(*key);
        let there = holding.parallel.get(*key).map_or(&[][..], Vec::as_slice);
        let changed: Vec<_> = there.iter().filter(|(_, v)| Some(v) != before).collect();
        !match (changed.as_slice(), here) {
            ([], here) => here == before,
            ([(worker, value)], Some(here)) => numbers.same(*worker, here, value),
            _ => false,
        }
    };
    let keys = holding.keys().filter(differs);
    keys.map(|key| holding.differs(key)).collect()
}
