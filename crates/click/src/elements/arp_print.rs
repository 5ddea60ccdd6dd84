//! `ARPPrint([LABEL, TIMESTAMP, ETHER, ACTIVE])`: prints what an ARP message of Ethernet and IPv4 asks or answers on standard error, and passes
//! it on; the message begins at the network header, or where there is none at the packet's front.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("ARPPrint", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("LABEL TIMESTAMP ETHER ACTIVE");
    let time = args.flag("TIMESTAMP", true)?;
    let ether = args.flag("ETHER", false)?;
    let active = args.flag("ACTIVE", true)?;
    let label = args.take("LABEL").map(|l| crate::language::args::text(&l));
    args.done()?;
    Ok(Box::new(Print {
        label: label.unwrap_or_default(),
        time,
        ether,
        active,
    }))
}

struct Print {
    label: String,
    time: bool,
    /// whether link addresses are said, too
    ether: bool,
    active: bool,
}

/// What a message says (RFC 826); none if it is none of Ethernet and IPv4.
fn said(arp: &[u8], ether: bool) -> Option<String> {
    let bytes = arp.get(..28)?;
    if bytes.get(..6)? != [0, 1, 8, 0, 6, 4] {
        return None;
    }
    let address = |at: usize| {
        let parts = bytes.get(at..at + 4).unwrap_or(&[]).iter();
        parts.map(u8::to_string).collect::<Vec<_>>().join(".")
    };
    let link = |at: usize| {
        let parts = bytes.get(at..at + 6).unwrap_or(&[]).iter();
        let parts = parts.map(|b| format!("{b:02X}"));
        parts.collect::<Vec<_>>().join("-")
    };
    Some(match bytes.get(6..8)? {
        [0, 1] if ether => format!(
            "arp who-has {} tell {} ({})",
            address(24),
            address(14),
            link(8)
        ),
        [0, 1] => format!("arp who-has {} tell {}", address(24), address(14)),
        [0, 2] => format!("arp reply {} is-at {}", address(14), link(8)),
        [high, low] => format!("arp op {}", u16::from_be_bytes([*high, *low])),
        _ => return None,
    })
}

impl Element for Print {
    fn meaning(&self) -> Option<Meaning> {
        Some(match self.active {
            true => Meaning::Shows,
            false => Meaning::Pass,
        })
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if self.active {
            let mut line = String::new();
            if !self.label.is_empty() {
                line += &format!("{}: ", self.label);
            }
            if self.time {
                line += &format!("{}: ", crate::summary::field::time(packet.time));
            }
            let arp = packet.ip().unwrap_or(packet.data());
            line += &said(arp, self.ether).unwrap_or_else(|| "not ARP of Ethernet and IPv4".into());
            line.push('\n');
            cx.note(&line);
        }
        Some(packet)
    }
}
