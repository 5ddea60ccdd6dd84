//! Intervals of fields as Click's patterns and conditions.

use std::net::Ipv4Addr;

use crate::field::{Base, Var, Word};
use crate::rows::{Cube, FROM, IP, PROTOCOL, TO, WORDS, prefixes, var};

/// Bits of an IP header without options.
const HEADER: u32 = 160;

/// Patterns of `Classifier` for an interval of a field of the frame.
pub(super) fn bytes(of: Var, low: u64, high: u64) -> Vec<String> {
    let Var::Bits(_, first, width) = of else {
        return Vec::new();
    };
    let (start, end) = (first / 8, (first + u32::from(width)).div_ceil(8));
    let shift = end * 8 - first - u32::from(width);
    let digits = 2 * (end - start) as usize;
    let all = u64::MAX >> (64 - 4 * digits as u32);
    prefixes(low, high, u32::from(width))
        .into_iter()
        .map(|(value, mask)| {
            let (value, mask) = (value << shift, mask << shift);
            match mask == all {
                true => format!("{start}/{value:0digits$x}"),
                false => format!("{start}/{value:0digits$x}%{mask:0digits$x}"),
            }
        })
        .collect()
}

/// A condition of `IPFilter` for an interval of a field of IP's header.
pub(super) fn field(of: Var, low: u64, high: u64) -> Option<String> {
    let (first, width) = match of {
        Var::Entry(_, word) => {
            let at = match word {
                Word::Source => 2,
                Word::Destination => 1,
                Word::Sport => FROM,
                Word::Dport => TO,
            };
            let mut cube = Cube::all();
            cube = cube.within(at, low, high)?;
            return Some(self::cube(&cube));
        }
        Var::Bits(Base::Frame, first, width) => (first.checked_sub(u32::from(IP) * 8)?, width),
        _ => return None,
    };
    // A field behind the header may be there in part, and a filter tests all of it.
    if first + u32::from(width) > HEADER {
        return None;
    }
    let start = first / 8;
    let bytes = match (first + u32::from(width)).div_ceil(8) - start {
        bytes @ (1 | 2 | 4) => bytes,
        _ => return None,
    };
    let shift = bytes * 8 - (first - start * 8) - u32::from(width);
    let mask = of.most() << shift;
    let text = match mask == u64::MAX >> (64 - 8 * bytes) {
        true => format!("ip[{start}:{bytes}]"),
        false => format!("ip[{start}:{bytes}] & {mask:#x}"),
    };
    let (low, high, most) = (low << shift, high << shift, of.most() << shift);
    Some(match (low == 0, high == most) {
        (true, true) => "all".into(),
        _ if low == high => format!("{text} = {low}"),
        (true, false) => format!("{text} <= {high}"),
        (false, true) => format!("{text} >= {low}"),
        (false, false) => format!("{text} >= {low} && {text} <= {high}"),
    })
}

/// A condition for a cube of words of flows.
pub(super) fn cube(of: &Cube) -> String {
    let mut all = Vec::new();
    for word in 0..WORDS {
        if of.whole(word) {
            continue;
        }
        let (low, high) = of.get(word);
        all.push(match word {
            PROTOCOL if low == high => match low {
                1 => "icmp".to_owned(),
                6 => "tcp".to_owned(),
                17 => "udp".to_owned(),
                other => format!("ip proto {other}"),
            },
            PROTOCOL => field(var(PROTOCOL), low, high).unwrap_or_else(|| "none".into()),
            TO | FROM => {
                let side = if word == TO { "dst" } else { "src" };
                match (low, high) {
                    (low, high) if low == high => format!("{side} port {low}"),
                    (0, high) => format!("{side} port <= {high}"),
                    (low, 65_535) => format!("{side} port >= {low}"),
                    (low, high) => format!("{side} port >= {low} && {side} port <= {high}"),
                }
            }
            _ => {
                let side = if word == 1 { "dst" } else { "src" };
                let nets: Vec<String> = prefixes(low, high, 32)
                    .into_iter()
                    .map(|(value, mask)| {
                        let address = Ipv4Addr::from(value as u32);
                        format!("{side} net {address}/{}", (mask as u32).count_ones())
                    })
                    .collect();
                match nets.as_slice() {
                    [one] => one.clone(),
                    several => format!("({})", several.join(" or ")),
                }
            }
        });
    }
    match all.is_empty() {
        true => "all".into(),
        false => all.join(" && "),
    }
}
