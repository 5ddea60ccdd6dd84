//! `FixIPSrc(ADDRESS)`: writes ADDRESS as the source of packets whose annotation asks for it (ICMPError's), and computes the
//! header's checksum again.

use super::prelude::*;
use crate::packet::FIX_SOURCE;
use millrace_wire::ipv4;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("FixIPSrc", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("IPADDR");
    let text = args.needed("IPADDR", "ADDRESS")?;
    let address = args.ip(&text)?;
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
