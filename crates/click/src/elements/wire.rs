//! `Wire`: a packet leaves one configuration and enters the next, as by a cable from `ToDevice` to `FromDevice`. Bytes alone go along: the
//! packet begins at its first byte, its kind is that of its Ethernet destination, annotations are zero, no header is marked but the link
//! header at its front, and what was stripped before does not come back.
//!
//! It pulls one packet in each round or is pushed into, and pushes on. It is Millrace's own: where neighbours in a chain file become one
//! configuration, it stands for their two devices.

use super::device::kind;
use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("Wire", "1/1", "a/h", make)];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(Wire {
        pulls: setup.pulls(),
    }))
}

struct Wire {
    pulls: bool,
}

impl Element for Wire {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Wire)
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        let mut fresh = Packet::new(packet.data());
        (fresh.time, fresh.number) = (packet.time, packet.number);
        fresh.kind = kind(&fresh);
        fresh.mark_mac(0);
        cx.push(0, fresh);
    }

    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        self.pulls
            .then(|| cx.pull_into(|packet| self.push(0, packet, cx)))
    }
}
