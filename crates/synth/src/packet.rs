//! A synthesis applied to a packet in memory: what the generated C does, for tests and comparisons.

use millrace_wire::{ipv4, put, word};

use crate::Synthesis;
use crate::action::{Action, Value, Verdict};
use crate::field::{Base, Var};

/// What became of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fate {
    /// where it ended
    pub verdict: Verdict,
    /// its bytes, if it leaves
    pub bytes: Vec<u8>,
}

/// The value of a field; bytes that the frame does not have are zero.
#[must_use]
pub fn value(frame: &[u8], port: u8, var: Var) -> u64 {
    let byte = |at: usize| u64::from(frame.get(at).copied().unwrap_or(0));
    let upper = |at: u16| usize::from(at) + ipv4::header_bytes(byte(usize::from(at)) as u8);
    match var {
        Var::Port => u64::from(port),
        Var::Length => (frame.len() as u64).min(65_535),
        Var::Checked(at, sum) => u64::from(right(frame, at, sum)),
        Var::Bits(base, bit, width) => {
            let start = match base {
                Base::Frame => 0,
                Base::Upper(at) => upper(at) * 8,
            };
            let bits = start + bit as usize..start + bit as usize + usize::from(width);
            bits.fold(0, |n, bit| n << 1 | byte(bit / 8) >> (7 - bit % 8) & 1)
        }
        Var::Room(at, cut) => {
            let total = usize::from(word(frame, usize::from(at) + ipv4::LENGTH).unwrap_or(0));
            let end = match cut {
                true => usize::from(at) + total,
                false => frame.len(),
            };
            (end.saturating_sub(upper(at)) as u64).min(65_535)
        }
        Var::Destination | Var::Anno(_) | Var::Kind | Var::Entry(..) | Var::Listed(..) => 0,
    }
}

/// Whether a frame has a right IPv4 header at a byte, as a router must check (RFC 1812, 5.2.2).
fn right(frame: &[u8], at: u16, sum: bool) -> bool {
    let ip = frame.get(usize::from(at)..).unwrap_or(&[]);
    if ip.len() < ipv4::HEADER || ip.first().is_none_or(|b| b >> 4 != 4) {
        return false;
    }
    let Ok(header) = ipv4::Header::new_checked(ip) else {
        return false;
    };
    let total = usize::from(header.total_length());
    total <= ip.len() && total >= header.header_length() && (!sum || header.sum().holds())
}

/// What becomes of a frame.
#[must_use]
pub fn apply(of: &Synthesis, frame: &[u8], port: u8) -> Option<Fate> {
    let number = of.store.find(of.root, &|var| match var {
        Var::Listed(..) => of.actions.lists.find(var, &|var| value(frame, port, var)),
        var => value(frame, port, var),
    });
    let action = of.actions.get(number)?;
    let bytes = match action.verdict {
        Verdict::Leave { .. } | Verdict::Pass(_) => written(action, frame, port),
        _ => Vec::new(),
    };
    Some(Fate {
        verdict: action.verdict,
        bytes,
    })
}

fn written(action: &Action, frame: &[u8], port: u8) -> Vec<u8> {
    let mut new = frame.to_vec();
    // Complements of sums, and whether they come from more than differences of changed words (see `emit`).
    let mut sums: Vec<(usize, bool, u64)> = Vec::new();
    let mut add = |at: usize, udp: bool, more: u64| match sums.iter_mut().find(|s| s.0 == at) {
        Some(sum) => sum.2 += more,
        None => sums.push((at, udp, more)),
    };
    for (var, write) in &action.writes {
        let Var::Bits(base, bit, width) = *var else {
            continue;
        };
        let start = match base {
            Base::Frame => 0,
            Base::Upper(at) => {
                let first = frame.get(usize::from(at)).copied().unwrap_or(0);
                (usize::from(at) + ipv4::header_bytes(first)) * 8
            }
        };
        let number = match write.value {
            Value::Constant(number) => number,
            Value::Field(from, more) => {
                value(frame, port, from).wrapping_add_signed(more) & var.most()
            }
        };
        let first = start + bit as usize;
        let before = new.clone();
        for n in 0..usize::from(width) {
            let (place, one) = (first + n, number >> (usize::from(width) - 1 - n) & 1);
            if let Some(byte) = new.get_mut(place / 8) {
                let mask = 1 << (7 - place % 8);
                *byte = if one == 1 {
                    *byte | mask
                } else {
                    *byte & !mask
                };
            }
        }
        let mut difference = 0;
        let last = first + usize::from(width) - 1;
        for at in (first / 16 * 2..=last / 16 * 2).step_by(2) {
            let old = word(&before, at).unwrap_or(0);
            difference += u64::from(!old) + u64::from(word(&new, at).unwrap_or(0));
        }
        let ttl = matches!(var, Var::Bits(Base::Frame, _, 8));
        if write.again && !ttl {
            difference += 0xffff;
        }
        if let Some(at) = write.sums.header {
            add(usize::from(at) + ipv4::CHECKSUM, false, difference);
        }
        if let Some((at, _)) = upper_sum(frame, action, write.sums.upper) {
            add(at, write.sums.upper == 17, difference);
        }
    }
    for (at, udp, more) in sums {
        let Some(old) = word(frame, at) else {
            continue;
        };
        let mut total = u64::from(!old) + more;
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        let sum = !(total as u16);
        let sum = match (udp, old) {
            (true, 0) => 0,
            (true, _) if sum == 0 => 0xffff,
            _ => sum,
        };
        put(&mut new, at, sum);
    }
    if let Some(at) = action.cut {
        let total = word(frame, usize::from(at) + ipv4::LENGTH).unwrap_or(0);
        new.truncate(usize::from(at) + usize::from(total));
    }
    if let Ok(head) = usize::try_from(action.head) {
        new.drain(..head.min(new.len()));
    }
    new
}

/// Where the sum of TCP or UDP is.
fn upper_sum(frame: &[u8], action: &Action, protocol: u8) -> Option<(usize, u8)> {
    let at = action
        .writes
        .values()
        .find_map(|w| w.sums.header)
        .or(action.cut)?;
    let first = frame.get(usize::from(at)).copied()?;
    let upper = usize::from(at) + ipv4::header_bytes(first);
    match protocol {
        6 => Some((upper + 16, 6)),
        17 => Some((upper + 6, 17)),
        _ => None,
    }
}
