//! `SetPacketType(TYPE)`: the packet's type, which says for whom it is, becomes `HOST`, `BROADCAST`, `MULTICAST` or
//! `OTHERHOST`; `OUTGOING`, `LOOPBACK` and `FASTROUTE`, which no element here asks for, are as `OTHERHOST`.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::{Kind, Packet};

/// SetPacketType
pub const CLASS: Class = Class {
    name: "SetPacketType",
    ports: "1/1",
    processing: "a/a",
    make,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["TYPE"]);
    let name = args.take("TYPE").ok_or("too few arguments: TYPE")?;
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
