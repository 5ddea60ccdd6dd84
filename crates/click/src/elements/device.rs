//! `FromDevice(NAME)`, `PollDevice`, `FromHost`: where packets enter. They have no task: a packet is given to them from outside
//! (`Router::inject`), and gets its type by the Ethernet destination. `ToDevice(NAME)`: where packets leave; it pulls one in each round
//! or is pushed into. `FromDPDKDevice`, `ToDPDKDevice`, `FromNetmapDevice`, `ToNetmapDevice` are the same.

use super::prelude::*;
use crate::packet::Kind;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("FromDevice", "0/1-2", "h/h", make),
    Class::new("PollDevice", "0/1", "h/h", make),
    Class::new("FromHost", "0/1-2", "h/h", make),
    Class::new("FromDPDKDevice", "0/1", "h/h", make),
    Class::new("FromNetmapDevice", "0/1", "h/h", make),
    Class::new("ToDevice", "1/0", "a/a", to),
    Class::new("ToDPDKDevice", "1/0", "a/a", to),
    Class::new("ToNetmapDevice", "1/0", "a/a", to),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
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
    args.keywords("DEVNAME");
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
        self.pulls.then(|| cx.pull_into(|packet| cx.leave(packet)))
    }
}
