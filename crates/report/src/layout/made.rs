//! Packets on which expressions are tried: IPv6 with a given number of extension headers, and ICMPv6 errors with an
//! inner packet.

use std::collections::BTreeMap;

use millrace_model::expr::SymId;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;

/// The header numbers of extension headers: hop-by-hop options, routing, fragment, authentication, destination
/// options.
pub(super) const EXTENSIONS: [u8; 5] = [0, 43, 44, 51, 60];
/// Bytes of the fixed header.
pub(super) const HEADER: i64 = 40;
/// Most extension headers of a made packet.
pub(super) const MOST: usize = 8;
/// Transport protocol behind all extension headers, by trial: the first are those that offsets are tried on.
pub(super) const LAST: [u8; 5] = [6, 17, 58, 58, 59];
/// Most extension headers of a carried packet where all shapes are tried.
const CARRIED: usize = 3;
/// Bytes of a made packet: all headers of at most five units of 8 bytes.
const BYTES: u64 = 14 + 8 + 2 * (40 + 8 * 40) + 8 + 64;

/// A made packet.
pub(super) struct Made {
    pub(super) values: Assignment,
    /// where the headers behind the fixed one begin; the last is no extension header
    pub(super) outer: Vec<i64>,
    /// those of the carried packet
    pub(super) inner: Vec<i64>,
    pub(super) protocol: u8,
    pub(super) carried: u8,
}

/// How many extension headers it has, how many the packet has that it carries, and which trial.
pub(super) type Shape = (usize, Option<usize>, u64);

/// A packet that a guard may be about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Possible {
    pub(super) shape: Shape,
    /// the number behind its extension headers
    pub(super) protocol: u8,
    /// the same of the carried packet
    pub(super) carried: Option<u8>,
}

/// All shapes that are tried.
pub(super) fn shapes() -> impl Iterator<Item = Possible> {
    let counts = (0..=MOST).flat_map(|n| {
        let carried = (0..=CARRIED).map(Some);
        std::iter::once(None).chain(carried).map(move |i| (n, i))
    });
    counts.flat_map(|(n, i)| {
        (0..).zip(LAST).map(move |(t, last)| Possible {
            shape: (n, i, t),
            protocol: if i.is_some() { 58 } else { last },
            carried: i.map(|_| last),
        })
    })
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same draws in every run.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Writes a fixed header and this many extension headers at an offset, `last` behind them; where each begins.
fn chain(
    packet: &mut BTreeMap<u64, u8>,
    at: i64,
    (count, trial): (usize, u64),
    last: u8,
    draw: &mut dyn FnMut() -> u64,
) -> Vec<i64> {
    let mut put = |at: i64, v: u8| packet.extend([(at as u64, v)]);
    put(at, 0x60);
    let mut next_at = at + 6;
    let mut place = at + HEADER;
    let mut all = vec![place];
    for n in 0..count {
        // In turn, so that at each place the packets of a few shapes have one of each.
        let turn = n + 2 * count + trial as usize;
        let kind = EXTENSIONS
            .get(turn % EXTENSIONS.len())
            .copied()
            .unwrap_or(0);
        put(next_at, kind);
        let units = (draw() % 4) as u8;
        put(place + 1, units);
        // A later fragment would end the chain.
        put(place + 2, 0);
        put(place + 3, (draw() % 2) as u8);
        next_at = place;
        place += match kind {
            44 => 8,
            // RFC 4302, section 2.2.
            51 => 4 * (i64::from(units) + 2),
            _ => 8 * (i64::from(units) + 1),
        };
        all.push(place);
    }
    put(next_at, last);
    all
}

pub(super) fn make(network: i64, (outer, inner, trial): Shape, length: Option<SymId>) -> Made {
    let seed = mix((outer as u64) << 32 | (inner.map_or(99, |i| i as u64)) << 16 | trial);
    let mut packet: BTreeMap<u64, u8> = (0..BYTES).map(|at| (at, mix(seed ^ at) as u8)).collect();
    let mut count = 0;
    let mut draw = || {
        count += 1;
        mix(seed.wrapping_add(count << 40))
    };
    let last = LAST.get(trial as usize).copied().unwrap_or(6);
    for tag in (12..network - 2).step_by(4) {
        packet.extend([(tag as u64, 0x81), (tag as u64 + 1, 0)]);
    }
    packet.extend([(network as u64 - 2, 0x86), (network as u64 - 1, 0xdd)]);
    let own = if inner.is_some() { 58 } else { last };
    let outer = chain(&mut packet, network, (outer, trial), own, &mut draw);
    let transport = outer.last().copied().unwrap_or(network + HEADER);
    let inner = inner.map_or_else(Vec::new, |count| {
        packet.insert(transport as u64, 1);
        chain(&mut packet, transport + 8, (count, trial), last, &mut draw)
    });
    let end = inner.last().copied().unwrap_or(transport) as u64;
    match (last, trial) {
        // TCP without options; a request and a reply of an echo.
        (6, _) => packet.extend([(end + 12, 0x50)]),
        (58, 2) => packet.extend([(end, 128)]),
        (58, _) => packet.extend([(end, 129)]),
        _ => {}
    }
    // Both lengths hold all of it.
    let payload = BYTES as i64 - network - HEADER;
    packet.extend([
        (network as u64 + 4, (payload >> 8) as u8),
        (network as u64 + 5, payload as u8),
    ]);
    let mut symbols: IdMap<SymId, u64> = IdMap::default();
    if let Some(s) = length {
        symbols.insert(s, BYTES);
    }
    Made {
        values: Assignment::new(symbols, packet),
        outer,
        inner,
        protocol: own,
        carried: last,
    }
}
