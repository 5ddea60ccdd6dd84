//! Counters that each worker adds to by itself.

use std::collections::HashMap;

use millrace_dataplane::module::KeyValue;

use super::{EntryDifference, Holding};

/// What the workers added sums to what the sequential side added: in words of 64 or of 32 bits, whichever
/// fits all of the value. Sums wrap, as the counters do.
pub fn compare(holding: &Holding, base: &[KeyValue]) -> Vec<EntryDifference> {
    let base: HashMap<&Vec<u8>, &Vec<u8>> = base.iter().map(|(k, v)| (k, v)).collect();
    let differs = |key: &&Vec<u8>| {
        let there = holding.parallel.get(*key).map_or(&[][..], Vec::as_slice);
        let here = holding.sequential.get(*key);
        let before = base.get(*key).map_or(&[][..], |v| v.as_slice());
        let here = here.map_or(&[][..], Vec::as_slice);
        ![8, 4].iter().any(|bytes| sums(here, before, there, *bytes))
    };
    let keys = holding.keys().filter(differs);
    keys.map(|key| holding.differs(key)).collect()
}

fn sums(here: &[u8], before: &[u8], there: &[(u32, Vec<u8>)], bytes: usize) -> bool {
    let length = there.iter().map(|t| t.1.len()).max().unwrap_or(0);
    let words = length.max(here.len()).div_ceil(bytes);
    (0..words).all(|i| {
        let word = |value: &[u8]| {
            let part = value.iter().skip(i * bytes).take(bytes);
            let shifted = part.enumerate().map(|(n, b)| u64::from(*b) << (8 * n));
            shifted.fold(0_u64, |sum, b| sum | b)
        };
        let added = there
            .iter()
            .map(|(_, value)| word(value).wrapping_sub(word(before)));
        let sum = added.fold(0_u64, u64::wrapping_add);
        let all = if bytes == 8 { u64::MAX } else { (1 << 32) - 1 };
        (word(here).wrapping_sub(word(before)) ^ sum) & all == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn parts_add_up_in_words_of_either_size() {
        let parts = vec![(0, value(&[5, 1])), (1, value(&[u32::MAX, 2]))];
        // 5 and -1 wrap in 32 bits, and carry in 64.
        assert!(sums(&value(&[4, 3]), &value(&[0, 0]), &parts, 4));
        assert!(sums(&value(&[4, 4]), &value(&[0, 0]), &parts, 8));
        assert!(!sums(&value(&[4, 3]), &value(&[0, 0]), &parts, 8));
        assert!(!sums(&value(&[5, 3]), &value(&[0, 0]), &parts, 4));
        // What was there at start is there once.
        let parts = vec![(0, value(&[12])), (1, value(&[13]))];
        assert!(sums(&value(&[15]), &value(&[10]), &parts, 4));
        assert!(!sums(&value(&[25]), &value(&[10]), &parts, 4));
    }
}
