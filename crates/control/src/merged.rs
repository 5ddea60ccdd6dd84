//! Objects to whose numbers each worker adds by itself: who reads them sees the sums.

use std::collections::HashMap;

use millrace_dataplane::module::KeyValue;

/// A number in a value that packets add to, in the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word {
    /// bytes from the value's start
    pub offset: usize,
    /// 1, 2, 4 or 8
    pub bytes: usize,
}

/// What the parts of a value come to. Sums wrap, as the numbers do; bytes that nobody adds to are those of the first
/// part.
#[must_use]
pub fn sum(words: &[Word], parts: &[Vec<u8>]) -> Option<Vec<u8>> {
    let (first, others) = parts.split_first()?;
    let mut all = first.clone();
    for word in words {
        let place = word.offset..word.offset.saturating_add(word.bytes);
        let of = |value: &Vec<u8>| {
            let bytes = value.get(place.clone()).unwrap_or_default();
            bytes
                .iter()
                .rev()
                .fold(0_u64, |n, b| n << 8 | u64::from(*b))
        };
        let total = others.iter().map(of).fold(of(first), u64::wrapping_add);
        for (to, from) in all
            .get_mut(place.clone())
            .unwrap_or_default()
            .iter_mut()
            .zip(total.to_le_bytes())
        {
            *to = from;
        }
    }
    Some(all)
}

/// The entries of all parts, in the order of the first part that has them; a key's values are summed.
#[must_use]
pub fn entries(words: &[Word], parts: Vec<Vec<KeyValue>>) -> Vec<KeyValue> {
    let mut place = HashMap::new();
    let mut all: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
    for (key, value) in parts.into_iter().flatten() {
        let at = *place.entry(key.clone()).or_insert(all.len());
        match all.get_mut(at) {
            Some((_, values)) => values.push(value),
            None => all.push((key, vec![value])),
        }
    }
    let summed = all.into_iter();
    summed
        .filter_map(|(key, values)| Some((key, sum(words, &values)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wrap_within_their_word() {
        let words = [
            Word {
                offset: 0,
                bytes: 4,
            },
            Word {
                offset: 8,
                bytes: 2,
            },
        ];
        let one = vec![0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 0, 7, 8];
        let two = vec![2, 0, 0, 0, 9, 9, 9, 9, 0xff, 0xff, 9, 9];
        let sum = sum(&words, &[one.clone(), two, vec![0; 12]]);
        assert_eq!(sum, Some(vec![1, 0, 0, 0, 1, 2, 3, 4, 4, 0, 7, 8]));
        assert_eq!(super::sum(&words, &[]), None);
        // A value that is shorter than its words is left as it is.
        assert_eq!(
            super::sum(&words, &[vec![1; 3], vec![1; 3]]),
            Some(vec![1; 3])
        );
        assert_eq!(super::sum(&[], std::slice::from_ref(&one)), Some(one));
    }

    #[test]
    fn entries_are_summed_by_key() {
        let words = [Word {
            offset: 0,
            bytes: 1,
        }];
        let part = |list: &[(u8, u8)]| list.iter().map(|(k, v)| (vec![*k], vec![*v])).collect();
        let parts = vec![part(&[(3, 1), (1, 2)]), part(&[(1, 5), (2, 7)])];
        assert_eq!(entries(&words, parts), part(&[(3, 1), (1, 7), (2, 7)]));
    }
}
