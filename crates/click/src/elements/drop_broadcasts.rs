//! `DropBroadcasts`: drops what the link layer received as broadcast or multicast. It reads the packet's type, not the frame.
//! Handlers: `drops`.

use super::prelude::*;
use crate::packet::Kind;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("DropBroadcasts", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(Drop(0)))
}

struct Drop(u64);

impl Element for Drop {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Broadcasts)
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if matches!(packet.kind, Kind::Broadcast | Kind::Multicast) {
            self.0 += 1;
            cx.drop(packet);
            return None;
        }
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "drops").then(|| Ok(self.0.to_string()))
    }
}
