//! Packets that name a leased number although they belong to no flow that the function has rewritten: a stranger's, sent
//! to a public port, or an error about one.
//!
//! Which free number an allocator returns is open, so a number in a packet of the trace means nothing by itself: on one
//! side it may be somebody's, on the other somebody else's or nobody's. The trace's numbers are those of the sequential
//! program. On the parallel side such a packet names what stands for the number there (`lease.rs`):
//!
//! - a number that is leased: the one of the same lease, where the packet with that number comes to the worker which has
//!   the lease. Where it does not, because what else the packet says leads elsewhere, it is no packet of the lease's flow
//!   (R5), and names a number that is free at the worker to which it comes;
//! - a number that is free: one that is free there, the same if it is.
//!
//! Where a packet has such a number is learned from the sequential program alone: what leaves at a port with a leased
//! number as its source's port, from an address, is sent to this address with the number as the destination's port.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use millrace_dataplane::module::Module;
use millrace_dataplane::packet::Fate;
use millrace_dataplane::runner::Timers;
use millrace_object::state::Addressing;

use crate::lane::Done;
use crate::modules::alone;
use crate::run::{Case, VerifyError};
use crate::trace::{Packet, Trace};
use crate::tuple::{Carried, Places};

/// Packets after which a place is taken for one of leased numbers although no lease keeps what was there before.
const ENOUGH: u64 = 16;

/// Where packets name numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct At {
    /// the port where they come in
    port: u32,
    protocol: u8,
    /// the number is the destination's port; else the source's
    destination: bool,
    /// the address beside it
    address: Vec<u8>,
}

/// Packets that left, with the numbers in them.
#[derive(Default, Debug)]
struct Count {
    packets: u64,
    leased: u64,
    /// the address before stood in the lease's value
    kept: u64,
    objects: BTreeMap<usize, u64>,
    /// one of the numbers, and whether there was another one
    number: Option<u16>,
    several: bool,
}

/// Where packets name numbers, and of which allocators.
#[derive(Default, Debug)]
pub struct Named {
    at: HashMap<At, Vec<usize>>,
}

/// A packet that names a number.
pub struct Probe {
    /// the number
    pub number: u16,
    /// the allocators, by their index in the program: one, where anything tells
    pub objects: Vec<usize>,
    place: Place,
}

enum Place {
    Own(Places, bool),
    Carried(Carried),
}

impl Probe {
    /// The same packet with another number; its checksums follow.
    #[must_use]
    pub fn with(&self, packet: &Packet, number: u16) -> Packet {
        let mut packet = packet.clone();
        match &self.place {
            Place::Own(places, destination) => {
                places.write_port(&mut packet.frame, *destination, number);
            }
            Place::Carried(carried) => carried.write_port(&mut packet.frame, number),
        }
        packet
    }
}

impl Named {
    /// The number that a packet names; none where it names none.
    #[must_use]
    pub fn of(&self, packet: &Packet) -> Option<Probe> {
        if self.at.is_empty() {
            return None;
        }
        let frame = &packet.frame;
        let find = |protocol, destination, address: &Vec<u8>| {
            self.at.get(&At {
                port: packet.port,
                protocol,
                destination,
                address: address.clone(),
            })
        };
        if let Some(carried) = Carried::of(frame) {
            // The packet that was sent, as the function had made it.
            let (protocol, end) = carried.sender(frame)?;
            return Some(Probe {
                number: end.port,
                objects: find(protocol, true, &end.address)?.clone(),
                place: Place::Carried(carried),
            });
        }
        let places = Places::of(frame)?;
        let tuple = places.tuple(frame)?;
        let ends = [(true, &tuple.destination), (false, &tuple.source)];
        let (destination, number, objects) = ends.into_iter().find_map(|(destination, end)| {
            let objects = find(tuple.protocol, destination, &end.address)?;
            Some((destination, end.port, objects.clone()))
        })?;
        Some(Probe {
            number,
            objects,
            place: Place::Own(places, destination),
        })
    }

    /// Goes through the trace with the sequential program.
    ///
    /// # Errors
    /// The trace cannot be read, or there is no memory for the state.
    pub fn learn(
        case: &Case<'_>,
        module: &Arc<Module>,
        rewrites: bool,
        trace: &mut dyn Trace,
    ) -> Result<Self, VerifyError> {
        let mut objects = case.program.objects.iter();
        if !rewrites || !objects.any(|o| o.kind.addressing == Addressing::Lease) {
            return Ok(Self::default());
        }
        let mut counts: HashMap<At, Count> = HashMap::new();
        let mut lane = None;
        let (mut number, mut clock) = (0, 0);
        let mut pass = trace.open()?;
        while let Some((port, time, wire, frame)) = pass.next()? {
            clock = time.max(clock);
            if lane.is_none() {
                let lane = &mut lane;
                *lane = Some((
                    alone(case, module, rewrites, clock)?,
                    Timers::new(module.timers(), clock),
                ));
            }
            let Some((lane, timers)) = &mut lane else {
                break;
            };
            if timers.due(clock) {
                for (moment, timer) in timers.take(clock) {
                    lane.fire(timer, moment);
                }
            }
            let packet = Packet {
                number,
                port,
                time: clock,
                wire,
                frame: frame.to_vec(),
            };
            number += 1;
            let done = lane.work(std::slice::from_ref(&packet), None).pop();
            if let Some(done) = done.flatten() {
                count(&mut counts, &packet, &done);
            }
        }
        // An end that is rewritten to what happens to be leased as well is none: only some packets have such. A host that has but one
        // flow has one port in all of them.
        let all = |c: &Count| {
            c.leased == c.packets && (c.kept == c.packets || c.packets >= ENOUGH && c.several)
        };
        let at = counts.into_iter().filter(|(_, c)| all(c));
        let at = at.map(|(at, c)| {
            let mut objects: Vec<(usize, u64)> = c.objects.into_iter().collect();
            // Other allocators have leased the same number by chance, now and then and for others.
            let most = objects.iter().map(|o| o.1).max();
            objects.retain(|(_, n)| Some(*n) == most);
            (at, objects.into_iter().map(|o| o.0).collect())
        });
        Ok(Self { at: at.collect() })
    }
}

/// Counts where a packet left with a number in place of its own.
fn count(counts: &mut HashMap<At, Count>, packet: &Packet, done: &Done) {
    let outcome = &done.outcome;
    let Fate::Forwarded(to) = outcome.fate else {
        return;
    };
    if to == packet.port {
        return;
    }
    let tuple = |frame: &[u8]| Places::of(frame).and_then(|p| Some((p.tuple(frame)?, p)));
    let (Some((before, _)), Some((after, places))) = (tuple(&done.given), tuple(&outcome.bytes))
    else {
        return;
    };
    let ends = [
        (true, &before.source, &after.source),
        (false, &before.destination, &after.destination),
    ];
    for (destination, was, is) in ends {
        if was.address == is.address {
            continue;
        }
        let at = At {
            port: to,
            protocol: after.protocol,
            destination,
            address: is.address.clone(),
        };
        let count = counts.entry(at).or_default();
        count.packets += 1;
        let here =
            |at| places.side_of(at).is_some_and(|side| side != destination) || places.is_echo(at);
        let leases = outcome.leases.iter().filter(|l| l.bytes == 2 && here(l.at));
        let mut any = (false, false);
        for lease in leases {
            let size = was.address.len().max(1);
            any.0 = true;
            let keeps = lease
                .value
                .windows(size)
                .any(|w| w == was.address.as_slice());
            any.1 |= keeps;
            let port = was.port.to_be_bytes();
            let votes = 1 + u64::from(keeps) + u64::from(lease.value.windows(2).any(|w| w == port));
            *count.objects.entry(lease.object).or_default() += votes;
        }
        count.several |= *count.number.get_or_insert(is.port) != is.port;
        count.leased += u64::from(any.0);
        count.kept += u64::from(any.1);
    }
}
