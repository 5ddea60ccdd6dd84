//! Linear algebra over GF(2), and over GF(2^64) where a generic point is wanted.

mod echelon;
mod row;
mod wide;

pub(crate) use echelon::Echelon;
pub(crate) use row::Row;
pub(crate) use wide::{Wide, rank as wide_rank};

/// The rank over GF(2) of a matrix whose rows are the low bits of words.
pub(crate) fn word_rank(rows: impl IntoIterator<Item = u64>) -> usize {
    let mut pivots = [0_u64; 64];
    let mut rank = 0;
    for mut row in rows {
        while row != 0 {
            let lead = row.trailing_zeros() as usize;
            let Some(pivot) = pivots.get_mut(lead) else {
                break;
            };
            if *pivot == 0 {
                *pivot = row;
                rank += 1;
                break;
            }
            row ^= *pivot;
        }
    }
    rank
}
