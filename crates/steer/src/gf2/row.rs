//! A vector over GF(2).

/// So many bits, 64 to a word; bits behind the end are zero and stay so.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Row(Vec<u64>);

impl Row {
    /// The zero vector with room for this many bits.
    pub fn zero(bits: usize) -> Self {
        Self(vec![0; bits.div_ceil(64)])
    }

    /// Makes it the zero vector again.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Bit `at`; 0 behind the end.
    pub fn get(&self, at: usize) -> bool {
        self.0
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Adds 1 to bit `at`; nothing behind the end.
    pub fn flip(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word ^= 1 << (at % 64);
        }
    }

    /// Adds a vector of the same length.
    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word ^= other;
        }
    }

    /// Sets the bits that are set in a vector of the same length.
    pub fn join(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    /// The first bit that is set, from bit `from` on.
    pub fn first(&self, from: usize) -> Option<usize> {
        let start = from / 64;
        let words = self.0.get(start..)?;
        for (place, word) in words.iter().enumerate() {
            let masked = match place {
                0 => word & u64::MAX << (from % 64),
                _ => *word,
            };
            if masked != 0 {
                return Some((start + place) * 64 + masked.trailing_zeros() as usize);
            }
        }
        None
    }

    /// The bits that are set, in ascending order.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let at = self.first(from)?;
            from = at + 1;
            Some(at)
        })
    }

    /// Whether no bit is set.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The inner product.
    pub fn dot(&self, other: &Self) -> bool {
        let words = self.0.iter().zip(&other.0);
        words.fold(0, |sum, (a, b)| sum ^ (a & b)).count_ones() % 2 == 1
    }

    /// Bits `from` to `from + count`, the first one as the most significant of the result; at most 64.
    pub fn window(&self, from: usize, count: usize) -> u64 {
        let word = |at: usize| self.0.get(at).copied().unwrap_or(0);
        let (at, shift) = (from / 64, from % 64);
        let low = word(at) >> shift;
        let high = word(at + 1).checked_shl(64 - shift as u32).unwrap_or(0);
        match count {
            0 => 0,
            1..=64 => (low | high).reverse_bits() >> (64 - count),
            _ => (low | high).reverse_bits(),
        }
    }

    /// How many bits are set.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn is_a_list_of_bits(
            bits in proptest::collection::vec(proptest::bool::ANY, 1..300),
            from in 0_usize..310,
            count in 0_usize..65,
        ) {
            let mut row = Row::zero(bits.len());
            let set = || (0..bits.len()).filter(|i| bits[*i]);
            set().for_each(|i| row.flip(i));
            let bit = |i: usize| bits.get(i).copied().unwrap_or(false);
            proptest::prop_assert_eq!(row.ones().collect::<Vec<_>>(), set().collect::<Vec<_>>());
            proptest::prop_assert_eq!(row.count(), set().count());
            proptest::prop_assert_eq!(row.first(from), (from..bits.len()).find(|i| bits[*i]));
            proptest::prop_assert_eq!(row.get(from), bit(from));
            let window = (from..from + count).fold(0, |w, i| w << 1 | u64::from(bit(i)));
            proptest::prop_assert_eq!(row.window(from, count), window);
            let (mut sum, parity) = (row.clone(), row.count() % 2 == 1);
            proptest::prop_assert_eq!(row.dot(&row), parity);
            sum.add(&row);
            proptest::prop_assert!(sum.is_zero());
        }
    }
}
