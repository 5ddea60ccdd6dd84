//! `Hub`: each packet to all outputs but that of its input. `PaintRR(N)`: outputs in turn by the aggregate annotation.
//! `SetTimestamp`, `SetTimestampDelta`: the time of now, or the packet's since that of the first. `EtherMirror`, `IPMirror`: swap source and
//! destination; `IPMirror([DST_ANNO])` swaps ports, too, and TCP's numbers of sequence and acknowledgement, and sets the annotation.

use super::prelude::*;
use crate::packet::AGGREGATE;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Hub", "1-/1-", "h/h", |args, _| plain(args, Hub)),
    Class::new("PaintRR", "1/-", "h/h", |args, _| plain(args, ByAggregate)),
    Class::new("SetTimestamp", "1/1", "a/a", |args, _| {
        plain(args, Stamp(None))
    }),
    Class::new("SetTimestampDelta", "1/1", "a/a", |args, _| {
        plain(args, Stamp(Some(None)))
    }),
    Class::new("EtherMirror", "1/1", "a/a", |args, _| {
        plain(args, EtherMirror)
    }),
    Class::new("IPMirror", "1/1", "a/a", ip_mirror),
];

/// An element whose arguments say nothing.
fn plain(args: &mut Args<'_>, element: impl Element + 'static) -> Made {
    args.all();
    Ok(Box::new(element))
}

fn ip_mirror(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("DST_ANNO");
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
