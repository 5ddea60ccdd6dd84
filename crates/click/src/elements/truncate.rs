//! `Truncate(N)`: cuts packets after N bytes; NBYTES is a keyword of it. `Pad([N])`: adds zeros up to N bytes, or up to the length
//! that the IP header or the packet's own record says. EXTRA_ANNO says whether what is cut still counts as the packet's length (true
//! for Truncate).

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Truncate", "1/1", "a/a", make),
    Class::new("Pad", "1/1", "a/a", pad),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("LENGTH NBYTES EXTRA_ANNO");
    let extra = args.flag("EXTRA_ANNO", true)?;
    let length = match args.keyword("NBYTES") {
        Some(text) => crate::arguments::integer(&text).ok_or("bad NBYTES")?,
        None => args.number("LENGTH", -1)?,
    };
    args.done()?;
    let length = usize::try_from(length).map_err(|_| "too few arguments: the number of bytes")?;
    Ok(Box::new(Truncate { length, extra }))
}

fn pad(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("LENGTH ZERO MAXLENGTH RANDOM");
    let length = args.number("LENGTH", -1)?;
    args.done()?;
    Ok(Box::new(Pad(usize::try_from(length.min(65_535)).ok())))
}

struct Truncate {
    length: usize,
    extra: bool,
}

impl Element for Truncate {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it changes the packet's length"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let cut = packet.len().saturating_sub(self.length);
        packet.truncate(self.length);
        if self.extra {
            packet.missing = packet.missing.saturating_add(cut as u32);
        }
        Some(packet)
    }
}

struct Pad(Option<usize>);

impl Element for Pad {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it changes the packet's length"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let full = packet.len() + packet.missing.min(65_535) as usize;
        let to = self.0.unwrap_or(full);
        if let Some(more) = to.checked_sub(packet.len()) {
            packet.extend(more);
            packet.missing = full.saturating_sub(to) as u32;
        }
        Some(packet)
    }
}
