//! `CheckTCPHeader`, `CheckUDPHeader`, `CheckICMPHeader([VERBOSE])`: check protocol, lengths and checksum behind the marked IP
//! header; bad packets go to output 1, or are dropped. The checksum of a packet that is not all there is not checked.

use super::prelude::*;
use millrace_wire::checksum::Sum;
use millrace_wire::{ipv4, tcp};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("CheckTCPHeader", "1/1-2", "a/ah", |args, _| check(args, 6)),
    Class::new("CheckUDPHeader", "1/1-2", "a/ah", |args, _| check(args, 17)),
    Class::new("CheckICMPHeader", "1/1-2", "a/ah", |args, _| check(args, 1)),
];

fn check(args: &mut Args<'_>, protocol: u8) -> Made {
    args.keywords("VERBOSE DETAILS");
    let verbose = args.flag("VERBOSE", false)?;
    args.done()?;
    Ok(Box::new(Check {
        protocol,
        verbose,
        drops: 0,
    }))
}

struct Check {
    protocol: u8,
    verbose: bool,
    drops: u64,
}

impl Check {
    fn wrong(&self, packet: &Packet) -> Option<&'static str> {
        let ip = packet.ip()?;
        let Ok(header) = ipv4::Header::new_checked(ip) else {
            return Some("no IP header");
        };
        if header.protocol() != self.protocol {
            return Some("wrong protocol");
        }
        let length = usize::from(header.total_length()).saturating_sub(header.header_length());
        let upper = ip.get(header.header_length()..).unwrap_or(&[]);
        let held = upper.len() + packet.missing as usize;
        let (least, whole) = match self.protocol {
            6 => match tcp::Header::new_checked(upper) {
                Ok(tcp) => (tcp.header_length(), length),
                Err(_) => return Some("bad header length"),
            },
            17 => (8, millrace_wire::word(upper, 4).map_or(0, usize::from)),
            // An error carries a header and eight bytes (RFC 792).
            _ => match upper.first() {
                Some(3..=5 | 11 | 12) => (36, held),
                Some(13 | 14) if held != 20 => return Some("bad length"),
                Some(15 | 16) if held != 8 => return Some("bad length"),
                _ => (8, held),
            },
        };
        if whole < least || whole > held {
            return Some("bad length");
        }
        if packet.missing > 0 {
            return None;
        }
        let sum = Sum::default().bytes(upper.get(..whole).unwrap_or(upper));
        let (source, destination) = (header.source().octets(), header.destination().octets());
        let sum = match self.protocol {
            1 => sum,
            protocol => sum.pseudo(&source, &destination, protocol, whole as u32),
        };
        let none = self.protocol == 17 && millrace_wire::word(upper, 6) == Some(0);
        (!none && !sum.holds()).then_some("bad checksum")
    }
}

impl Element for Check {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside(
            "it verifies the sum of a transport header",
        ))
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let Some(why) = self.wrong(&packet) else {
            return Some(packet);
        };
        if self.verbose || self.drops == 0 {
            cx.note(&format!("{}: header check failed: {why}\n", cx.title()));
        }
        self.drops += 1;
        cx.reject(1, packet);
        None
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "drops").then(|| Ok(self.drops.to_string()))
    }
}
