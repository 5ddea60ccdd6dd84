//! `FromDevice(NAME)`, `PollDevice`, `FromHost`: where packets enter. They have no task: a packet is given to them from outside
//! (`Router::inject`), and gets its type by the Ethernet destination. `ToDevice(NAME)`: where packets leave; it pulls one in each round
//! or is pushed into. `FromDPDKDevice`, `ToDPDKDevice`, `FromNetmapDevice`, `ToNetmapDevice` are the same.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::Kind;
use crate::packet::Packet;

/// FromDevice
pub const CLASS: Class = Class {
    name: "FromDevice",
    ports: "0/1-2",
    processing: "h/h",
    make,
};

/// PollDevice
pub const POLL: Class = Class {
    name: "PollDevice",
    ports: "0/1",
    processing: "h/h",
    make,
};

/// FromHost
pub const HOST: Class = Class {
    name: "FromHost",
    ports: "0/1-2",
    processing: "h/h",
    make,
};

/// FromDPDKDevice
pub const FROM_DPDK: Class = Class {
    name: "FromDPDKDevice",
    ports: "0/1",
    processing: "h/h",
    make,
};

/// FromNetmapDevice
pub const FROM_NETMAP: Class = Class {
    name: "FromNetmapDevice",
    ports: "0/1",
    processing: "h/h",
    make,
};

/// ToDevice
pub const TO: Class = Class {
    name: "ToDevice",
    ports: "1/0",
    processing: "a/a",
    make: to,
};

/// ToDPDKDevice
pub const TO_DPDK: Class = Class {
    name: "ToDPDKDevice",
    ports: "1/0",
    processing: "a/a",
    make: to,
};

/// ToNetmapDevice
pub const TO_NETMAP: Class = Class {
    name: "ToNetmapDevice",
    ports: "1/0",
    processing: "a/a",
    make: to,
};

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    let _ = setup;
    Ok(Box::new(From(name(args))))
}

fn to(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    Ok(Box::new(To {
        name: name(args),
        pulls: setup.pulls(),
    }))
}

/// The device's name, by keyword or as the first argument; the others are the driver's.
fn name(args: &mut Args<'_>) -> String {
    args.keywords(&["DEVNAME"]);
    let name = args.take("DEVNAME").unwrap_or_default();
    args.all();
    crate::language::args::text(&name)
}

/// For whom a packet is, by its Ethernet destination.
pub(super) fn kind(packet: &Packet) -> Kind {
    match packet.data().get(..6) {
        Some([255, 255, 255, 255, 255, 255]) => Kind::Broadcast,
        Some([first, ..]) if first & 1 != 0 => Kind::Multicast,
        _ => Kind::Host,
    }
}

struct From(String);

impl Element for From {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Enter(self.0.clone()))
    }

    fn push(&mut self, _: usize, mut packet: Packet, cx: &Context<'_>) {
        packet.kind = kind(&packet);
        packet.mark_mac(0);
        cx.push(0, packet);
    }
}

struct To {
    name: String,
    pulls: bool,
}

impl Element for To {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Leave(self.name.clone()))
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        cx.leave(packet);
    }

    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        if !self.pulls {
            return None;
        }
        let packet = cx.pull(0);
        let worked = packet.is_some();
        if let Some(packet) = packet {
            cx.leave(packet);
        }
        Some(worked)
    }
}
