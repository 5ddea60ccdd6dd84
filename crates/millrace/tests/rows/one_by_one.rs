//! The reference: each packet goes through all elements before the next one.

use millrace_dataplane::Instance;
use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};
use millrace_dataplane::runner::Timers;
use millrace_topology::{End, Topology};

use super::traffic::{Packet, Trace};
use super::{Outcome, Part, SEED};

/// More than any packet takes that is not sent back and forth for ever.
const HOPS: usize = 64;

/// An element, running.
enum Running {
    Function {
        instance: Box<Instance>,
        entry: usize,
        timers: Timers,
        burst: Burst,
    },
    Hosted {
        returns: bool,
        seen: Vec<Vec<u8>>,
    },
}

/// Where a packet goes from an element of this many ports; none: that is its fate.
fn out(fate: Fate, port: u32, ports: usize) -> Result<usize, usize> {
    match fate {
        Fate::Forwarded(port) => Ok(port as usize),
        Fate::Flooded if ports == 2 => Ok(1 - port as usize),
        Fate::Dropped(_) => Err(1),
        Fate::Passed => Err(2),
        Fate::Consumed => Err(3),
        Fate::Flooded | Fate::Aborted => Err(4),
    }
}

impl Running {
    fn give(&mut self, bytes: &[u8], arrival: Arrival) -> (Fate, Vec<u8>) {
        match self {
            Self::Function {
                instance,
                entry,
                burst,
                ..
            } => {
                burst.clear();
                assert!(burst.push(bytes, arrival));
                instance.burst(*entry, false, burst);
                let outcome = burst.outcome(0).unwrap();
                (outcome.fate, outcome.bytes.to_vec())
            }
            Self::Hosted { returns, seen } => {
                seen.push(bytes.to_vec());
                let back = *returns && seen.len().is_multiple_of(3);
                let port = if back { arrival.port } else { 1 - arrival.port };
                (Fate::Forwarded(port), bytes.to_vec())
            }
        }
    }
}

/// The entries of an instance's objects, by object.
pub fn state(instance: &mut Instance, now: u64) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
    let objects = instance.module().objects().len();
    let listed = (0..objects).filter(|i| instance.module().lists(*i));
    let listed: Vec<_> = listed.collect();
    let of = |index| {
        let mut entries = instance.entries(index, 1 << 20, now).unwrap();
        // Their order is that of a secret hash.
        entries.sort();
        entries
    };
    listed.into_iter().map(of).collect()
}

/// Runs elements over a trace.
pub fn run(parts: &[Part<'_>], topology: &Topology, trace: &Trace) -> Outcome {
    let start = trace.packets[0].time;
    let elements = parts.iter().enumerate().map(|(index, part)| match part {
        Part::Function(function) => {
            let mut config = function.state(SEED + index as u64, Vec::new());
            config.time = start;
            let mut instance = Instance::create(function.module.clone(), &config).unwrap();
            instance.start(start);
            Running::Function {
                instance: Box::new(instance),
                entry: function.entry,
                timers: Timers::new(function.module.timers(), start),
                burst: Burst::new(1, topology.ports(index).len() as u32, Layout::Pooled),
            }
        }
        Part::Tap | Part::Returns => Running::Hosted {
            returns: matches!(part, Part::Returns),
            seen: Vec::new(),
        },
    });
    let mut elements: Vec<_> = elements.collect();
    let mut outcome = Outcome::default();
    let mut clock = start;
    for (packet, number) in trace.packets.iter().zip(0..) {
        clock = clock.max(packet.time);
        for element in &mut elements {
            if let Running::Function {
                instance, timers, ..
            } = element
                && timers.due(clock)
            {
                for (moment, timer) in timers.take(clock) {
                    instance.fire(timer, moment);
                }
            }
        }
        let mut at = topology.entries()[packet.port as usize];
        let mut bytes = packet.bytes.clone();
        let mut hops = 0;
        loop {
            let (element, port) = match at {
                End::Element { element, port } => (element, port),
                End::Out(port) => {
                    outcome.fates[0] += 1;
                    let wire = packet.wire - packet.bytes.len() as u32 + bytes.len() as u32;
                    outcome.out.push(Packet {
                        port,
                        wire,
                        bytes,
                        ..packet.clone()
                    });
                    break;
                }
            };
            hops += 1;
            assert!(hops < HOPS, "sent back and forth");
            let arrival = Arrival {
                number,
                port,
                time: clock,
                stamp: packet.time,
                wire: packet.wire,
                home: 0,
                place: 0,
            };
            let (fate, after) = elements[element].give(&bytes, arrival);
            bytes = after;
            let ports = topology.ports(element);
            let next = out(fate, port, ports.len()).map(|port| ports.get(port));
            match next {
                Ok(Some(end)) => at = *end,
                // A port that there is not.
                Ok(None) => {
                    outcome.fates[4] += 1;
                    break;
                }
                Err(fate) => {
                    outcome.fates[fate] += 1;
                    break;
                }
            }
        }
    }
    for (index, element) in elements.iter_mut().enumerate() {
        match element {
            Running::Function { instance, .. } => {
                instance.alarm(clock);
                instance.stop(clock);
                let objects = instance.module().objects().len();
                let counts = (0..objects).map(|object| instance.count(object, clock));
                outcome.counts.extend(counts);
                if index == 0 {
                    outcome.state = state(instance, clock);
                }
            }
            Running::Hosted { seen, .. } => outcome.seen.push(std::mem::take(seen)),
        }
    }
    outcome
}
