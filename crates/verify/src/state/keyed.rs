//! Entries by their keys, as sets.

use std::collections::HashMap;

use super::{EntryDifference, Holding, Numbers};

/// Each entry of the sequential side is at one worker, and there is no other one.
pub fn compare(holding: &Holding, numbers: &Numbers) -> Vec<EntryDifference> {
    let mut left = Vec::new();
    for key in holding.keys() {
        let here = holding.sequential.get(key);
        let there = holding.parallel.get(key).map_or(&[][..], Vec::as_slice);
        let same = match (here, there) {
            (Some(value), [(worker, other)]) => numbers.same(*worker, value, other),
            _ => false,
        };
        if !same {
            left.push(holding.differs(key));
        }
    }
    under_other_numbers(left, numbers)
}

/// Takes away what is the same entry under keys that hold leased numbers.
fn under_other_numbers(mut left: Vec<EntryDifference>, numbers: &Numbers) -> Vec<EntryDifference> {
    if numbers.is_empty() {
        return left;
    }
    let missing = left.iter().enumerate();
    let mut missing: HashMap<Vec<u8>, usize> = missing
        .filter(|(_, d)| d.parallel.is_empty())
        .map(|(i, d)| (d.key.clone(), i))
        .collect();
    let mut gone = vec![false; left.len()];
    for (at, extra) in left.iter().enumerate() {
        let [(worker, value)] = extra.parallel.as_slice() else {
            continue;
        };
        if extra.sequential.is_some() {
            continue;
        }
        let translated = numbers.translated(*worker, &extra.key).into_iter();
        let partner = translated.into_iter().find_map(|key| {
            let partner = *missing.get(&key)?;
            let here = left.get(partner)?.sequential.as_ref()?;
            numbers.same(*worker, here, value).then_some((key, partner))
        });
        if let Some((key, partner)) = partner {
            missing.remove(&key);
            for i in [at, partner] {
                if let Some(gone) = gone.get_mut(i) {
                    *gone = true;
                }
            }
        }
    }
    let mut gone = gone.into_iter();
    left.retain(|_| gone.next() == Some(false));
    left
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
