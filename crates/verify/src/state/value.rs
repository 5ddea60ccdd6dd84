//! Numbers in the bytes of keys and values.

/// How a number lies in bytes: reads `bytes` from `start`.
pub type Order = fn(&[u8], usize, usize) -> Option<u64>;

fn little(from: &[u8], start: usize, bytes: usize) -> Option<u64> {
    let part = from.get(start..start.checked_add(bytes)?)?;
    Some(part.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn big(from: &[u8], start: usize, bytes: usize) -> Option<u64> {
    let part = from.get(start..start.checked_add(bytes)?)?;
    Some(part.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
}

/// The aligned words around a byte, widest first, in both orders: where they begin and how long they are.
pub fn words(value: &[u8], at: usize) -> impl Iterator<Item = (usize, usize, Order)> {
    let length = value.len();
    let sizes = [8_usize, 4, 2].into_iter();
    let whole = sizes.filter_map(move |bytes| {
        let start = at / bytes * bytes;
        (start + bytes <= length).then_some((start, bytes))
    });
    whole.flat_map(|(start, bytes)| {
        [
            (start, bytes, little as Order),
            (start, bytes, big as Order),
        ]
    })
}

/// Whether two values are the same, but for words whose two numbers stand for each other: of those around a byte that differs the widest.
pub fn same_but(here: &[u8], there: &[u8], mut stand: impl FnMut(u64, u64) -> bool) -> bool {
    if here.len() != there.len() {
        return false;
    }
    let mut at = 0;
    while at < here.len() {
        if here.get(at) == there.get(at) {
            at += 1;
            continue;
        }
        let explained = words(here, at).find_map(|(start, bytes, order)| {
            let (a, b) = (order(here, start, bytes)?, order(there, start, bytes)?);
            stand(a, b).then_some(start + bytes)
        });
        match explained {
            Some(end) => at = end,
            None => return false,
        }
    }
    true
}

/// The bytes with another number in a word; none if it has no room there.
pub fn fits(
    value: &[u8],
    start: usize,
    bytes: usize,
    order: Order,
    number: u64,
) -> Option<Vec<u8>> {
    [false, true].into_iter().find_map(|reversed| {
        let mut changed = value.to_vec();
        let place = changed.get_mut(start..start + bytes)?;
        for (i, byte) in place.iter_mut().enumerate() {
            let shift = 8 * if reversed { bytes - 1 - i } else { i };
            *byte = (number >> shift) as u8;
        }
        (order(&changed, start, bytes) == Some(number)).then_some(changed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_in_both_orders() {
        let value = [1, 2, 3, 4];
        let numbers: Vec<u64> = words(&value, 3)
            .map(|(start, bytes, order)| order(&value, start, bytes).unwrap())
            .collect();
        assert_eq!(numbers, [0x0403_0201, 0x0102_0304, 0x0403, 0x0304]);
        assert_eq!(fits(&value, 2, 2, little, 0x0908).unwrap(), [1, 2, 8, 9]);
        assert_eq!(fits(&value, 2, 2, big, 0x0908).unwrap(), [1, 2, 9, 8]);
        assert_eq!(fits(&value, 2, 2, big, 0x1_0000), None);
    }
}
