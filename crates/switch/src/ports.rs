//! Ranges of ports as bits of metadata.
//!
//! A port lies in some ranges and not in others: tables before that of the rules look it up, once for each side, and write which
//! ranges these are. A rule then matches its range's code, so that it stays one row, where prefixes would be as many as 30 for each
//! side. Ranges that do not overlap share a field of metadata, as a port lies in one of them at most: a layer of n ranges takes
//! log2(n + 1) bits (Bremler-Barr, Hay, Hendler: Layered interval codes for TCAM-based classification, IEEE INFOCOM 2009). The largest
//! layers are taken first.

use std::collections::BTreeMap;

use crate::cubes::{PROTOCOL, prefixes};
use crate::flows::Line;

/// Codes of ranges of one side's ports.
#[derive(Default, Debug)]
pub(crate) struct Side {
    /// range, protocols that have it (1: TCP, 2: UDP), and its code: value and mask
    pub(crate) codes: BTreeMap<(u64, u64), (u8, u64, u64)>,
    /// bits of metadata
    pub(crate) bits: u32,
}

/// Ranges that are neither one port nor all, with their protocols.
pub(crate) fn ranges<'a>(
    lines: impl Iterator<Item = &'a Line>,
    word: usize,
) -> BTreeMap<(u64, u64), u8> {
    let mut found: BTreeMap<(u64, u64), u8> = BTreeMap::new();
    for line in lines {
        let (low, high) = line.cube.get(word);
        if low == high || (low, high) == (0, 65_535) {
            continue;
        }
        *found.entry((low, high)).or_default() |= match line.cube.get(PROTOCOL) {
            (6, 6) => 1,
            (17, 17) => 2,
            _ => 3,
        };
    }
    found
}

/// Gives ranges codes in bits from `first` on, below `end`. Ranges for which there is no room left become prefixes.
pub(crate) fn side(ranges: &BTreeMap<(u64, u64), u8>, first: u32, end: u32) -> Side {
    let mut side = Side::default();
    let mut left: Vec<(u64, u64)> = ranges.keys().copied().collect();
    left.sort_by_key(|r| (r.1, r.0));
    while !left.is_empty() {
        // The most ranges that do not overlap: always the one that ends first.
        let (mut layer, mut rest, mut end_of) = (Vec::new(), Vec::new(), None);
        for range in left {
            match end_of.is_none_or(|end| range.0 > end) {
                true => {
                    end_of = Some(range.1);
                    layer.push(range);
                }
                false => rest.push(range),
            }
        }
        let shift = first + side.bits;
        let free = end.saturating_sub(shift).min(32);
        // What does not fit into the last bits is left out.
        layer.truncate((1_usize << free) - 1);
        if layer.is_empty() {
            break;
        }
        let bits = usize::BITS - layer.len().leading_zeros();
        let mask = ((1_u64 << bits) - 1) << shift;
        for (n, range) in layer.into_iter().enumerate() {
            let protocols = ranges.get(&range).copied().unwrap_or(3);
            let code = (protocols, (n as u64 + 1) << shift, mask);
            side.codes.insert(range, code);
        }
        side.bits += bits;
        left = rest;
    }
    side
}

impl Side {
    /// Rows of one protocol: prefixes of ports or, where there are no masks, ports, with the bits that they set. Ports in no
    /// range are left out.
    pub(crate) fn rows(&self, protocol: u8, masks: bool) -> Vec<(u64, u64, u64)> {
        let of: Vec<_> = self
            .codes
            .iter()
            .filter(|(_, (protocols, ..))| protocols & protocol != 0)
            .collect();
        let mut cuts: Vec<u64> = of.iter().flat_map(|(r, _)| [r.0, r.1 + 1]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut rows = Vec::new();
        for pair in cuts.windows(2) {
            let [low, next] = *pair else { continue };
            let inside = of.iter().filter(|(r, _)| r.0 <= low && low <= r.1);
            let code = inside.fold(0, |code, (_, (_, value, _))| code | value);
            if code == 0 {
                continue;
            }
            match masks {
                true => {
                    let all = prefixes(low, next - 1, 16).into_iter();
                    rows.extend(all.map(|(value, mask)| (value, mask, code)));
                }
                false => rows.extend((low..next).map(|port| (port, 0xffff, code))),
            }
        }
        rows
    }
}
