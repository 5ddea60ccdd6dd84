//! The rank of a class's index matrix at a random point of the key space over GF(2^64).
//!
//! The matrix has a row for each input bit and a column for each index bit; its entries are linear in the
//! key. A minor that is not the zero polynomial of the key's coordinates has degree at most `q`, and is
//! zero at a random point with probability q / 2^64 at most (Schwartz 1980; Zippel 1979). So the rank at
//! the point is, but for that probability, the largest at any point of any extension: no key has more.

use rand::rand_core::Rng;

use super::class::Class;
use super::equations::Layout;
use super::solve::fixed;
use crate::gf2::{Row, Wide, wide_rank};

/// For each class that is asked about the bound on the rank of its index under any key, over two points; 0 for others.
pub(super) fn bounds(
    classes: &[Class],
    layout: &Layout,
    basis: &[Row],
    asked: impl Fn(&Class) -> bool,
) -> Vec<usize> {
    let mut random = fixed();
    let mut found = vec![0; classes.len()];
    for _ in 0..2 {
        let mut point = vec![0_u64; layout.unknowns];
        for vector in basis {
            let coordinate = random.next_u64();
            for at in vector.ones() {
                if let Some(value) = point.get_mut(at) {
                    *value ^= coordinate;
                }
            }
        }
        let mut known: Vec<((usize, usize), usize)> = Vec::new();
        let each = classes.iter().zip(&mut found);
        for (class, found) in each.filter(|(class, _)| asked(class)) {
            let same = (class.port, class.bits());
            let rank = known.iter().find(|(other, _)| *other == same);
            let rank = rank.map(|(_, rank)| *rank).unwrap_or_else(|| {
                let first = layout.first(class.port);
                let rows = (0..class.bits()).map(|at| {
                    let window = point.get(first + at..first + at + layout.index);
                    let window = window.unwrap_or_default();
                    window.iter().map(|value| Wide(*value)).collect()
                });
                let rank = wide_rank(rows, layout.index);
                known.push((same, rank));
                rank
            });
            *found = (*found).max(rank);
        }
        let each = classes.iter().zip(&found);
        let mut each = each.filter(|(class, _)| asked(class));
        if each.all(|(_, rank)| *rank == layout.index) {
            break;
        }
    }
    found
}
