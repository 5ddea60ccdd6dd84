//! `DecIPTTL([ACTIVE, MULTICAST])`: a packet whose time to live is 1 or less goes to output 1, or is dropped; others have it lowered
//! by one, the checksum updated (RFC 1624). MULTICAST false spares packets to groups.

use crate::arguments::Args;
use crate::element::{Class, Element, Made, Read};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Packet;
use millrace_wire::checksum::replace;
use millrace_wire::{ipv4, put, word};

/// DecIPTTL
pub const CLASS: Class = Class {
    name: "DecIPTTL",
    ports: "1/1-2",
    processing: "a/ah",
    make,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["ACTIVE", "MULTICAST", "CALC_CHECKSUM"]);
    let active = args.flag("ACTIVE", true)?;
    let multicast = args.flag("MULTICAST", true)?;
    args.keyword("CALC_CHECKSUM");
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
        let group = packet.destination()[0] >> 4 == 14;
        if !self.active || group && !self.multicast {
            return Some(packet);
        }
        let ip = packet.ip_mut().filter(|ip| ip.len() >= ipv4::HEADER);
        let Some(ip) = ip else {
            self.drops += 1;
            cx.reject(1, packet);
            return None;
        };
        if ip[8] <= 1 {
            self.drops += 1;
            cx.reject(1, packet);
            return None;
        }
        let (Some(from), Some(sum)) = (word(ip, 8), word(ip, ipv4::CHECKSUM)) else {
            return Some(packet);
        };
        ip[8] -= 1;
        let to = from.wrapping_sub(0x100);
        put(ip, ipv4::CHECKSUM, replace(sum, from, to));
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "drops").then(|| Ok(self.drops.to_string()))
    }
}
