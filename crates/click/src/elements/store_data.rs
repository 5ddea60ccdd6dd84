//! `StoreData(OFFSET, DATA [, MASK, GROW])`: writes bytes at a place, those bits that MASK has; GROW lets the packet become longer.
//! `MoveData(DST_OFFSET, SRC_OFFSET, LENGTH [, GROW])` copies bytes within the packet. `Resize([HEAD, TAIL])` adds bytes at the ends, or
//! takes them away; a packet of more than a MiB is dropped.

use super::prelude::*;
use crate::language::args::unquote;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("StoreData", "1/1", "a/a", make),
    Class::new("MoveData", "1/1", "a/a", movement),
    Class::new("Resize", "1/1", "a/a", resize),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("OFFSET DATA MASK GROW");
    let grow = args.flag("GROW", false)?;
    let mask = args.keyword("MASK").map(|m| unquote(&m));
    let offset = args.number("OFFSET", -1)?;
    let data = args
        .take("DATA")
        .map(|d| unquote(&d))
        .ok_or("too few arguments: OFFSET, DATA")?;
    args.done()?;
    let offset = usize::try_from(offset)
        .ok()
        .filter(|o| *o < 1 << 16)
        .ok_or("bad OFFSET")?;
    Ok(Box::new(Store {
        offset,
        data,
        mask,
        grow,
    }))
}

fn movement(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("DST_OFFSET SRC_OFFSET LENGTH GROW");
    let grow = args.flag("GROW", false)?;
    let mut number = |word: &str| {
        let number = args.number(word, -1)?;
        usize::try_from(number)
            .ok()
            .filter(|n| *n < 1 << 16)
            .ok_or(format!("bad {word}"))
    };
    let (to, from, length) = (
        number("DST_OFFSET")?,
        number("SRC_OFFSET")?,
        number("LENGTH")?,
    );
    args.done()?;
    Ok(Box::new(Move {
        to,
        from,
        length,
        grow,
    }))
}

fn resize(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("HEAD TAIL");
    let head = args.number("HEAD", 0)?.clamp(-65_535, 65_535);
    let tail = args.number("TAIL", 0)?.clamp(-65_535, 65_535);
    args.done()?;
    Ok(Box::new(Resize(head as isize, tail as isize)))
}

struct Store {
    offset: usize,
    data: Vec<u8>,
    mask: Option<Vec<u8>>,
    grow: bool,
}

impl Element for Store {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it writes bytes without their sums"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let end = self.offset + self.data.len();
        if self.grow && end > packet.len() {
            packet.extend(end - packet.len());
        }
        let mask = |at: usize| {
            self.mask
                .as_ref()
                .map_or(255, |m| m.get(at).copied().unwrap_or(255))
        };
        let bytes = packet.data_mut().get_mut(self.offset..).unwrap_or(&mut []);
        for (at, (to, from)) in bytes.iter_mut().zip(&self.data).enumerate() {
            *to = *to & !mask(at) | from & mask(at);
        }
        Some(packet)
    }
}

struct Move {
    to: usize,
    from: usize,
    length: usize,
    grow: bool,
}

impl Element for Move {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it writes bytes without their sums"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let data = packet.data();
        let end = (self.from + self.length).min(data.len());
        let bytes = data.get(self.from..end).unwrap_or(&[]).to_vec();
        let needed = self.to + bytes.len();
        if self.grow && !bytes.is_empty() && needed > packet.len() {
            packet.extend(needed - packet.len());
        }
        let to = packet.data_mut().get_mut(self.to..).unwrap_or(&mut []);
        to.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
        Some(packet)
    }
}

/// Bytes of a packet that becomes longer, at most: a row of these elements may ask for any number.
const MOST: isize = 1 << 20;

struct Resize(isize, isize);

impl Element for Resize {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it writes bytes without their sums"))
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if packet.len() as isize + self.0 + self.1 > MOST {
            cx.drop(packet);
            return None;
        }
        match usize::try_from(self.0) {
            Ok(more) => packet.push(more),
            Err(_) => packet.strip(self.0.unsigned_abs()),
        }
        match usize::try_from(self.1) {
            Ok(more) => packet.extend(more),
            Err(_) => packet.truncate(packet.len().saturating_sub(self.1.unsigned_abs())),
        }
        Some(packet)
    }
}
