//! An object as a reader outside sees it: exported, pinned, looked up by a key.
//!
//! `run` shows the parts of an object by [`Share::value`]; here the same function is asked, and must give what one core
//! shows.

use millrace_dataplane::Share;
use millrace_dataplane::share::cleared;
use millrace_place::Held;

use super::{EntryDifference, Holding, Numbers};

/// Each entry that is seen on one core is seen on many, with the same value, and no other one. Where packets store what they do not
/// read again, bytes to which nobody adds are what any worker stored last.
///
/// Where the program leased numbers, which keys and values may hold, the comparison of the parts says all.
pub fn compare(share: &Share, holding: &Holding, numbers: &Numbers) -> Vec<EntryDifference> {
    if !numbers.is_empty() {
        return Vec::new();
    }
    let differs = |key: &&Vec<u8>| {
        let parts = holding.parallel.get(*key).map_or(&[][..], Vec::as_slice);
        // The first worker's is what is shown where the others have no part in it.
        let counts = |worker: u32| share.parted() || worker == 0;
        let parts = parts.iter().filter(|(worker, _)| counts(*worker));
        let values: Vec<Vec<u8>> = parts.map(|(_, value)| value.clone()).collect();
        match (holding.sequential.get(*key), share.value(key, &values)) {
            (Some(here), Some(there)) => !same(share, here, &there),
            (None, None) => false,
            _ => true,
        }
    };
    let keys = holding.keys().filter(differs);
    keys.map(|key| holding.differs(key)).collect()
}

fn same(share: &Share, here: &[u8], there: &[u8]) -> bool {
    match &share.held {
        Held::Merged {
            words,
            latest: true,
            ..
        } if here.len() == there.len() => {
            let besides = cleared(words, here).into_iter().zip(cleared(words, there));
            let mut all = here.iter().zip(there).zip(besides);
            // A byte that differs behind its words is none of theirs.
            all.all(|((one, other), (first, second))| one == other || first != second)
        }
        _ => here == there,
    }
}
