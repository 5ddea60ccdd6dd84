//! Ranges of ports as bits of metadata.
//!
//! A port lies in some ranges and not in others: tables before that of the rules look it up, once for each side, and write which
//! ranges these are. A rule then matches its range's code, so that it stays one row, where prefixes would be as many as 30 for each
//! side. Ranges that do not overlap share a field of metadata, as a port lies in one of them at most: a layer of n ranges takes
//! log2(n + 1) bits (Bremler-Barr, Hay, Hendler: Layered interval codes for TCAM-based classification, IEEE INFOCOM 2009). The largest
//! layers are taken first.

use std::collections::BTreeMap;

use millrace_synth::rows::{FROM, Line, PROTOCOL, TO, prefixes};

/// Codes of ranges of one side's ports.
#[derive(Default, Debug)]
pub(crate) struct Side {
    /// range, protocols that have it (1: TCP, 2: UDP), and its code: value and mask
    pub(crate) codes: BTreeMap<(u64, u64), (u8, u64, u64)>,
    /// bits of metadata
    pub(crate) bits: u32,
}

/// Notes the range of a line that is neither one port nor all, with its protocols.
fn note(found: &mut BTreeMap<(u64, u64), u8>, line: &Line, word: usize) {
    let (low, high) = line.cube.get(word);
    if low != high && (low, high) != (0, 65_535) {
        *found.entry((low, high)).or_default() |= match line.cube.get(PROTOCOL) {
            (6, 6) => 1,
            (17, 17) => 2,
            _ => 3,
        };
    }
}

/// Gives ranges codes in bits from `first` on, below `end`. Ranges for which there is no room left become prefixes.
fn side(ranges: &BTreeMap<(u64, u64), u8>, first: u32, end: u32) -> Side {
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

/// A part of the rules, with tables of its own.
pub(crate) struct Stage<'a> {
    /// lines by region
    pub(crate) lines: Vec<&'a [Line]>,
    /// ranges of source and destination ports
    pub(crate) sides: [Side; 2],
    /// numbers of tables
    pub(crate) source: Option<u8>,
    pub(crate) destination: Option<u8>,
    pub(crate) flows: u8,
}

impl Stage<'_> {
    /// The lines of a region.
    pub(crate) fn of(&self, region: usize) -> &[Line] {
        self.lines.get(region).copied().unwrap_or(&[])
    }

    /// The table where packets of a region begin.
    pub(crate) fn entry(&self, region: usize) -> u8 {
        let uses = |side: &Side, word| {
            let mut all = self.of(region).iter().map(|l| l.cube.get(word));
            all.any(|range| side.codes.contains_key(&range))
        };
        let [source, destination] = &self.sides;
        let first = self.source.filter(|_| uses(source, FROM));
        let second = self.destination.filter(|_| uses(destination, TO));
        first.or(second).unwrap_or(self.flows)
    }
}

/// Divides lists, one a region, into as few parts as metadata has room for ranges; `used` bits are taken.
pub(crate) fn stages(lists: &[Vec<Line>], used: u32) -> Vec<Stage<'_>> {
    let mut left: Vec<&[Line]> = lists.iter().map(Vec::as_slice).collect();
    let mut stages = Vec::new();
    while left.iter().any(|l| !l.is_empty()) {
        let mut taken = [BTreeMap::new(), BTreeMap::new()];
        let mut lines = Vec::new();
        for rest in &mut left {
            let mut count = 0;
            for line in *rest {
                let mut more = taken.clone();
                let [from, to] = &mut more;
                note(from, line, FROM);
                note(to, line, TO);
                if more != taken {
                    let bits: u32 = more.iter().map(|r| side(r, 0, 64).bits).sum();
                    let all = more.iter().map(|r| side(r, 0, 64).codes.len());
                    if used + bits > 64 || all.sum::<usize>() < more.iter().map(BTreeMap::len).sum()
                    {
                        break;
                    }
                    taken = more;
                }
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            lines.push(now);
            *rest = later;
        }
        if lines.iter().all(|l| l.is_empty()) {
            // One range alone has no room: the rest is of prefixes.
            lines = std::mem::replace(&mut left, vec![&[]; lists.len()]);
        }
        let [from, to] = &taken;
        let source = side(from, used, 64);
        let destination = side(to, used + source.bits, 64);
        stages.push(Stage {
            lines,
            sides: [source, destination],
            source: None,
            destination: None,
            flows: 0,
        });
    }
    stages
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
