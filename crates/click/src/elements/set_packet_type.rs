//! `SetPacketType(TYPE)`: the packet's type, which says for whom it is, becomes `HOST`, `BROADCAST`, `MULTICAST` or
//! `OTHERHOST`; `OUTGOING`, `LOOPBACK` and `FASTROUTE`, which no element here asks for, are as `OTHERHOST`.

use super::prelude::*;
use crate::packet::Kind;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("SetPacketType", "1/1", "a/a", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("TYPE");
    let name = args.needed("TYPE", "TYPE")?;
    args.done()?;
    let kind = match name.trim().to_ascii_uppercase().as_str() {
        "HOST" => Kind::Host,
        "BROADCAST" => Kind::Broadcast,
        "MULTICAST" => Kind::Multicast,
        "OTHERHOST" | "OTHER" | "OUTGOING" | "LOOPBACK" | "FASTROUTE" => Kind::Other,
        _ => {
            return Err(format!(
                "TYPE: '{name}' is not HOST, BROADCAST, MULTICAST or OTHERHOST"
            ));
        }
    };
    Ok(Box::new(Set(kind)))
}

struct Set(Kind);

impl Element for Set {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Kind(self.0))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        packet.kind = self.0;
        Some(packet)
    }
}
