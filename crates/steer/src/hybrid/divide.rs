//! Division of a trace's packets over cores where heavy keys are replicated: what [`Heavy`] makes of it.

use std::collections::BTreeSet;

use super::{Heavy, Key, Move, PERIOD};
use crate::table::balanced;

/// Packets before those that are counted, in periods.
const WARM: usize = 4;

/// Parts of all packets, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Divided {
    /// of sharded keys, at the busiest core
    pub sharded: f64,
    /// of replicated keys, over all cores
    pub replicated: f64,
    /// the same if all keys were sharded: at the busiest core
    pub without: f64,
}

/// Divides packets, each with its key and its index in the indirection table, over this many cores. The table has 2^`bits` indexes and
/// is balanced to the packets. `row`: the cost of a row over that of a packet. The packets come again and again until the choice of
/// heavy keys has had four periods.
#[must_use]
pub fn divide(packets: &[(Key, u32)], bits: u32, cores: u16, row: f64) -> Divided {
    let indexes = 1_usize << bits.min(20);
    let mut loads = vec![0_u64; indexes];
    let place = |index: u32| index as usize & (indexes - 1);
    for (_, index) in packets {
        if let Some(load) = loads.get_mut(place(*index)) {
            *load += 1;
        }
    }
    let table = balanced(&loads, u32::from(cores.max(1)));
    let owner = |index: u32| table.get(place(index)).copied().unwrap_or(0);
    let mut heavy = Heavy::new(cores, row);
    let mut replicated: BTreeSet<Key> = BTreeSet::new();
    let warm = (WARM * PERIOD as usize).div_ceil(packets.len().max(1));
    let (mut own, mut all) = (vec![0_u64; usize::from(cores.max(1))], vec![0_u64; 0]);
    all.resize(own.len(), 0);
    let mut many = 0_u64;
    for pass in 0..=warm {
        for (key, index) in packets {
            let owner = owner(*index);
            let there = replicated.contains(key);
            if pass == warm {
                if let Some(load) = all.get_mut(owner as usize) {
                    *load += 1;
                }
                match own.get_mut(owner as usize) {
                    Some(load) if !there => *load += 1,
                    _ => many += 1,
                }
            }
            let over = match there {
                true => heavy.replicated(*key),
                false => {
                    let key = heavy.samples().then_some(*key);
                    heavy.sharded(owner, key)
                }
            };
            if over {
                for (to, key, _) in heavy.decide() {
                    match to {
                        Move::Promote => replicated.insert(key),
                        Move::Demote => replicated.remove(&key),
                    };
                }
            }
        }
    }
    let part = |count: u64| count as f64 / packets.len().max(1) as f64;
    Divided {
        sharded: part(own.iter().copied().max().unwrap_or(0)),
        replicated: part(many),
        without: part(all.iter().copied().max().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_elephant_is_divided_and_mice_are_not() {
        // Half of the packets are of one key.
        let packets: Vec<(Key, u32)> = (0..20_000_u32)
            .map(|n| match n % 2 {
                0 => (Key(7), 7),
                _ => (Key(u128::from(n)), n.wrapping_mul(2_654_435_761) >> 20),
            })
            .collect();
        let found = divide(&packets, 7, 4, 0.15);
        assert!((found.replicated - 0.5).abs() < 0.01, "{found:?}");
        assert!((found.without - 0.5).abs() < 0.02, "{found:?}");
        assert!(found.sharded < 0.17, "{found:?}");
        let mice: Vec<_> = packets.iter().copied().filter(|p| p.0 != Key(7)).collect();
        let found = divide(&mice, 7, 4, 0.15);
        assert_eq!(found.replicated, 0.0);
        assert_eq!(found.sharded, found.without);
        assert_eq!(divide(&[], 7, 4, 0.15).replicated, 0.0);
    }
}
