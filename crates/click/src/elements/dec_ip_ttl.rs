//! `DecIPTTL([ACTIVE, MULTICAST])`: a packet whose time to live is 1 or less goes to output 1, or is dropped; others have it lowered
//! by one, the checksum updated (RFC 1624). MULTICAST false spares packets to groups.

use super::prelude::*;
use millrace_wire::checksum::replace;
use millrace_wire::{ipv4, put, word};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("DecIPTTL", "1/1-2", "a/ah", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ACTIVE MULTICAST CALC_CHECKSUM");
    let active = args.flag("ACTIVE", true)?;
    let multicast = args.flag("MULTICAST", true)?;
    args.done()?;
    Ok(Box::new(Ttl {
        active,
        multicast,
        drops: 0,
    }))
}

struct Ttl {
    active: bool,
    multicast: bool,
    drops: u64,
}

impl Element for Ttl {
    fn meaning(&self) -> Option<Meaning> {
        Some(match self.active {
            true => Meaning::Ttl {
                multicast: self.multicast,
            },
            false => Meaning::Pass,
        })
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let group = packet
            .ip()
            .and_then(|ip| ip.get(16))
            .is_some_and(|b| b >> 4 == 14);
        if !self.active || group && !self.multicast {
            return Some(packet);
        }
        if !lower(&mut packet) {
            self.drops += 1;
            cx.reject(1, packet);
            return None;
        }
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "drops").then(|| Ok(self.drops.to_string()))
    }
}

/// Lowers the time to live, the header's sum with it (RFC 1624); false, and nothing is changed, where it is 1 or less or the packet has
/// no IP header.
pub(super) fn lower(packet: &mut Packet) -> bool {
    let ip = packet.ip_mut().filter(|ip| ip.len() >= ipv4::HEADER);
    let Some(ip) = ip.filter(|ip| ip[8] > 1) else {
        return false;
    };
    if let (Some(from), Some(sum)) = (word(ip, 8), word(ip, ipv4::CHECKSUM)) {
        ip[8] -= 1;
        let to = from.wrapping_sub(0x100);
        put(ip, ipv4::CHECKSUM, replace(sum, from, to));
    }
    true
}
