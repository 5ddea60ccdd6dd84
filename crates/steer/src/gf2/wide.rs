//! GF(2^64), as polynomials over GF(2) modulo x^64 + x^4 + x^3 + x + 1, which is irreducible (Seroussi,
//! "Table of Low-Weight Binary Irreducible Polynomials", HPL-98-135).

/// An element: bit `i` is the coefficient of x^i.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wide(pub u64);

/// x^64 reduced.
const MODULUS: u64 = 0b1_1011;

impl Wide {
    /// 1 / self, by Euclid's algorithm for polynomials; 0 of 0.
    fn inverse(self) -> Self {
        let degree = |p: u128| 127 - p.leading_zeros();
        // At each step a is f times self, and b is g times self, modulo the modulus.
        let (mut a, mut b) = (u128::from(self.0), 1 << 64 | u128::from(MODULUS));
        let (mut f, mut g) = (1_u128, 0_u128);
        while a > 1 {
            if a < b {
                (a, b, f, g) = (b, a, g, f);
            }
            let by = degree(a) - degree(b);
            a ^= b << by;
            f ^= g << by;
            // The modulus is irreducible: what is left over last is 1.
            if a == 0 {
                f = g;
                break;
            }
        }
        if self.0 == 0 { self } else { Self(f as u64) }
    }
}

/// The multiples of an element by all polynomials of degree 3 at most: what many are multiplied by.
struct Multiples([u64; 16]);

impl Multiples {
    fn of(element: Wide) -> Self {
        let mut multiples = [0_u64; 16];
        for nibble in 1..16_usize {
            let half = multiples[nibble / 2];
            let double = (half << 1) ^ ((half >> 63) * MODULUS);
            multiples[nibble] = double ^ ((nibble as u64 & 1) * element.0);
        }
        Self(multiples)
    }

    /// The product, four bits of the other element at a time.
    fn times(&self, other: Wide) -> Wide {
        let mut product = 0_u64;
        for nibble in (0..16).rev() {
            // Four bits leave at the top; the modulus has degree 4, so that they come back within 8.
            let out = product >> 60;
            let back = out ^ (out << 1) ^ (out << 3) ^ (out << 4);
            product = (product << 4) ^ back;
            product ^= self.0[(other.0 >> (4 * nibble)) as usize & 15];
        }
        Wide(product)
    }
}

/// The rank of a matrix of at most `most` columns; stops as soon as that is reached.
pub(crate) fn rank(rows: impl IntoIterator<Item = Vec<Wide>>, most: usize) -> usize {
    let zero = Wide(0);
    // Each with its leading column, where it has a 1.
    let mut pivots: Vec<(usize, Vec<Wide>)> = Vec::new();
    for mut row in rows {
        if pivots.len() >= most {
            break;
        }
        for (lead, pivot) in &pivots {
            let factor = row.get(*lead).copied().unwrap_or(zero);
            if factor != zero {
                let factor = Multiples::of(factor);
                for (cell, other) in row.iter_mut().zip(pivot) {
                    cell.0 ^= factor.times(*other).0;
                }
            }
        }
        if let Some((lead, first)) = row.iter().enumerate().find(|(_, cell)| **cell != zero) {
            let inverse = Multiples::of(first.inverse());
            row.iter_mut().for_each(|cell| *cell = inverse.times(*cell));
            pivots.push((lead, row));
        }
    }
    pivots.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(a: Wide, b: Wide) -> Wide {
        Multiples::of(b).times(a)
    }

    fn slowly(a: u64, b: u64) -> u64 {
        let mut wide = 0_u128;
        for bit in (0..64).filter(|bit| a >> bit & 1 == 1) {
            wide ^= u128::from(b) << bit;
        }
        for bit in (64..128).rev() {
            if wide >> bit & 1 == 1 {
                wide ^= (1 << 64 | u128::from(MODULUS)) << (bit - 64);
            }
        }
        wide as u64
    }

    proptest::proptest! {
        #[test]
        fn is_a_field(a: u64, b: u64) {
            proptest::prop_assert_eq!(times(Wide(a), Wide(b)).0, slowly(a, b));
            let inverse = Wide(a).inverse();
            let one = times(Wide(a), inverse).0;
            proptest::prop_assert_eq!(one, u64::from(a != 0));
        }

        /// A product of an m by r and an r by n matrix has rank r at most, and of random ones, r.
        #[test]
        fn the_rank_of_a_product(
            left in proptest::collection::vec(proptest::array::uniform3(1_u64..), 6),
            right in proptest::array::uniform3(proptest::array::uniform5(1_u64..)),
        ) {
            let rows = left.iter().map(|row| {
                (0..5).map(|column| {
                    let terms = row.iter().zip(&right);
                    Wide(terms.fold(0, |sum, (a, b)| sum ^ times(Wide(*a), Wide(b[column])).0))
                }).collect()
            });
            proptest::prop_assert_eq!(rank(rows, 5), 3);
        }
    }
}
