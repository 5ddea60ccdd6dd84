//! Packets of every class: for a path through the diagram, a frame that takes it.
//!
//! Values of fields are put into a frame that is right otherwise. Not every path has a packet: fields may depend on each other in
//! ways that the diagram does not know. Whoever asks finds out by [`crate::packet::value`].

use millrace_wire::{ipv4, put};

use crate::field::{Base, Var};

/// A frame for some values of fields; its port.
#[must_use]
pub fn frame(values: &[(Var, u64)]) -> (u8, Vec<u8>) {
    let of = |asked: &dyn Fn(Var) -> bool| values.iter().find(|v| asked(v.0)).map(|v| v.1);
    let at = values
        .iter()
        .find_map(|(var, _)| match *var {
            Var::Checked(at, _) | Var::Room(at, _) => Some(at),
            _ => None,
        })
        .unwrap_or(14);
    let start = usize::from(at);
    let port = of(&|v| v == Var::Port).unwrap_or(0) as u8;
    let ihl = of(&|v| v == crate::field::ip(at, crate::field::bit::IHL)).unwrap_or(5);
    let upper = start + 4 * ihl as usize;
    let room = values.iter().find_map(|(var, value)| match *var {
        Var::Room(_, cut) => Some((cut, *value as usize)),
        _ => None,
    });
    let length = of(&|v| v == Var::Length).map(|l| l as usize);
    let total = of(&|v| v == crate::field::ip(at, crate::field::bit::LENGTH)).map(|l| l as usize);
    let mut long = length.unwrap_or(match room {
        Some((_, room)) => upper + room,
        None => (upper + 26).max(start + total.unwrap_or(0)),
    });
    if length.is_none() {
        long = long.max(start + total.unwrap_or(0));
    }
    let mut frame = vec![0; long.min(9000)];
    let mut set = |first: usize, width: usize, value: u64| {
        for n in 0..width {
            let (place, one) = (first + n, value >> (width - 1 - n) & 1);
            if let Some(byte) = frame.get_mut(place / 8) {
                let mask = 1 << (7 - place % 8);
                *byte = if one == 1 {
                    *byte | mask
                } else {
                    *byte & !mask
                };
            }
        }
    };
    set(8 * 12, 16, 0x0800);
    set(8 * start, 8, 0x40 | ihl);
    set(8 * start + 64, 8, 64);
    set(8 * start + 72, 8, 17);
    set(8 * start + 96, 32, 0x0a00_0001);
    set(8 * start + 128, 32, 0x0a01_0001);
    set(8 * upper, 16, 1024);
    set(8 * upper + 16, 16, 80);
    let total = total.unwrap_or(match room {
        Some((true, room)) => 4 * ihl as usize + room,
        _ => long.saturating_sub(start),
    });
    set(8 * start + 16, 16, total as u64);
    for (var, value) in values {
        match *var {
            Var::Bits(Base::Frame, bit, width) => set(bit as usize, usize::from(width), *value),
            Var::Bits(Base::Upper(_), bit, width) => {
                set(8 * upper + bit as usize, usize::from(width), *value);
            }
            _ => {}
        }
    }
    // The sum is right unless another one is asked for.
    let wrong = values
        .iter()
        .any(|(v, value)| matches!(v, Var::Checked(_, true)) && *value == 0);
    if let Some(ip) = frame.get_mut(start..)
        && let Ok(mut header) = ipv4::Header::new_checked(&mut *ip)
    {
        header.fill_checksum();
        if wrong {
            let sum = millrace_wire::word(ip, ipv4::CHECKSUM).unwrap_or(0);
            put(ip, ipv4::CHECKSUM, sum ^ 0x1234);
        }
    }
    (port, frame)
}
