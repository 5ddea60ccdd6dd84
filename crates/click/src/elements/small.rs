//! `Hub`: each packet to all outputs but that of its input. `PaintRR(N)`: outputs in turn by the aggregate annotation.
//! `SetTimestamp`, `SetTimestampDelta`: the time of now, or the packet's since that of the first. `EtherMirror`, `IPMirror`: swap source and
//! destination; `IPMirror([DST_ANNO])` swaps ports, too, and TCP's numbers of sequence and acknowledgement, and sets the annotation.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;
use crate::packet::AGGREGATE;
use crate::packet::Packet;

/// Hub
pub const CLASS: Class = Class {
    name: "Hub",
    ports: "1-/1-",
    processing: "h/h",
    make,
};

/// PaintRR
pub const PAINT_RR: Class = Class {
    name: "PaintRR",
    ports: "1/-",
    processing: "h/h",
    make: by_aggregate,
};

/// SetTimestamp
pub const STAMP: Class = Class {
    name: "SetTimestamp",
    ports: "1/1",
    processing: "a/a",
    make: stamp,
};

/// SetTimestampDelta
pub const DELTA: Class = Class {
    name: "SetTimestampDelta",
    ports: "1/1",
    processing: "a/a",
    make: delta,
};

/// EtherMirror
pub const MIRROR: Class = Class {
    name: "EtherMirror",
    ports: "1/1",
    processing: "a/a",
    make: mirror,
};

/// IPMirror
pub const IP_MIRROR: Class = Class {
    name: "IPMirror",
    ports: "1/1",
    processing: "a/a",
    make: ip_mirror,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Hub))
}

fn by_aggregate(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(ByAggregate))
}

fn stamp(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Stamp(None)))
}

fn delta(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Stamp(Some(None))))
}

fn mirror(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(EtherMirror))
}

fn ip_mirror(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(&["DST_ANNO"]);
    let destination = args.flag_or_next("DST_ANNO", true)?;
    args.done()?;
    Ok(Box::new(IpMirror { destination }))
}

struct Hub;

impl Element for Hub {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it copies packets"))
    }

    fn push(&mut self, from: usize, packet: Packet, cx: &Context<'_>) {
        for port in (0..cx.outputs()).filter(|p| *p != from) {
            cx.push(port, packet.clone());
        }
    }
}

struct ByAggregate;

impl Element for ByAggregate {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("its output is an annotation"))
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        let number = u32::from_be_bytes(packet.quad(AGGREGATE)) as usize;
        cx.push(number % cx.outputs().max(1), packet);
    }
}

/// The time of now, or since the first packet.
struct Stamp(Option<Option<i64>>);

impl Element for Stamp {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it writes time stamps"))
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        packet.time = match &mut self.0 {
            None => cx.now(),
            Some(first) => packet
                .time
                .saturating_sub(*first.get_or_insert(packet.time)),
        };
        Some(packet)
    }
}

struct EtherMirror;

impl Element for EtherMirror {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it swaps addresses"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        if let Some(header) = packet.data_mut().get_mut(..12) {
            header.rotate_left(6);
        }
        Some(packet)
    }
}

struct IpMirror {
    /// whether the destination annotation is set
    destination: bool,
}

impl Element for IpMirror {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it swaps addresses"))
    }

    fn action(&mut self, mut packet: Packet, _: &Context<'_>) -> Option<Packet> {
        let Some((source, _)) = crate::headers::addresses(&packet) else {
            return Some(packet);
        };
        let flow = crate::headers::key(&packet);
        // Sums do not change: the same words are in them.
        if let Some(addresses) = packet.ip_mut().and_then(|ip| ip.get_mut(12..20)) {
            addresses.rotate_left(4);
        }
        if let (Some(flow), Some(upper)) = (flow, packet.upper_mut()) {
            if let Some(ports) = upper.get_mut(..4) {
                ports.rotate_left(2);
            }
            if flow.protocol == 6
                && let Some(numbers) = upper.get_mut(4..12)
            {
                numbers.rotate_left(4);
            }
        }
        if self.destination {
            packet.set_destination(source);
        }
        Some(packet)
    }
}
