//! `FixIPSrc(ADDRESS)`: writes ADDRESS as the source of packets whose annotation asks for it (ICMPError's), and computes the
//! header's checksum again.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::FIX_SOURCE;
use crate::packet::Packet;
use millrace_wire::ipv4;

/// FixIPSrc
pub const CLASS: Class = Class {
    name: "FixIPSrc",
    ports: "1/1",
    processing: "a/a",
    make,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["IPADDR"]);
    let text = args.take("IPADDR").ok_or("too few arguments: ADDRESS")?;
    let address = crate::arguments::ip(&text, args.names).ok_or(format!("bad address '{text}'"))?;
    args.done()?;
    Ok(Box::new(Fix(address)))
}

struct Fix([u8; 4]);

impl Element for Fix {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::FixSource)
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        if packet.anno[FIX_SOURCE] == 0 {
            return Some(packet);
        }
        packet.anno[FIX_SOURCE] = 0;
        if let Some(ip) = packet.ip_mut()
            && let Some(source) = ip.get_mut(ipv4::SOURCE)
        {
            source.copy_from_slice(&self.0);
            if let Ok(mut header) = ipv4::Header::new_checked(ip) {
                header.fill_checksum();
            }
        }
        Some(packet)
    }
}
