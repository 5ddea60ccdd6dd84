//! The cost of connected functions for a packet of a trace, on one worker: with what is between them, and without.

use millrace_dataplane::clock::{self, Rate};
use millrace_dataplane::packet::{Burst, Layout};
use millrace_dataplane::runner::BURST;
use millrace_dataplane::worker::Link;
use millrace_dataplane::worker::row::Row;
use millrace_topology::Topology;

use super::replay::{QUEUE, calm};
use super::trace::Frames;
use crate::Error;

/// Functions that are measured as they stand in a chain.
pub struct Connected<'a> {
    /// in their order
    pub links: &'a [Link],
    /// how they are connected; in a line if it is not said
    pub topology: Option<&'a Topology>,
    /// ports of the chain
    pub ports: u32,
    /// how often the trace comes, its times going on; at least 1
    pub rounds: usize,
}

/// Result of one turn, of the second half of what comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowTurn {
    /// million packets a second, copying them into buffers included
    pub mpps: f64,
    /// ns a packet from the first function's start to the last one's end, the slowest twentieth of the bursts left out
    pub packet_ns: f64,
    /// the part of it inside functions
    pub functions_ns: f64,
    /// how long a burst takes, of all its packets, ns: half of the bursts less, 99 of a hundred, 999 of a thousand
    pub burst_ns: [f64; 3],
}

/// Replays the trace on fresh state. The first half of what comes brings the state to what it usually is and is not counted.
///
/// # Errors
/// The state cannot be made.
pub fn turn(of: &Connected<'_>, frames: &Frames) -> Result<RowTurn, Error> {
    let mut row = Row::new(of.links, of.topology, of.ports as usize, frames.start())
        .map_err(|e| Error::wrong(e).help("declare a smaller capacity, or free memory"))?;
    let (each, round) = (frames.packets(), frames.round());
    let packets_of_all = each * of.rounds.max(1);
    let half = packets_of_all / 2;
    let rate = Rate::start();
    let mut queue: Vec<Burst> = (0..QUEUE)
        .map(|_| Burst::new(BURST, of.ports, Layout::Pooled))
        .collect();
    let (mut all, mut functions, mut bursts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut next, mut packets, mut ticks) = (0, 0, 0);
    while next < packets_of_all {
        let counted = next >= half;
        let begin = clock::ticks();
        for burst in &mut queue {
            burst.clear();
            while next < packets_of_all
                && frames.push_later(next % each, (next / each) as u64 * round, 0, burst)
            {
                next += 1;
            }
        }
        for burst in queue.iter_mut().filter(|b| !b.is_empty()) {
            let took = row.burst(burst);
            if counted {
                let count = burst.len() as f64;
                all.push(took.all as f64 / count);
                bursts.push(took.all);
                functions.push(took.functions as f64 / count);
                packets += burst.len();
            }
        }
        if counted {
            ticks += clock::ticks().saturating_sub(begin);
        }
    }
    let tick = rate.ns_per_tick();
    bursts.sort_unstable();
    let share = |of: f64| {
        let at = ((bursts.len().max(1) - 1) as f64 * of).round() as usize;
        bursts.get(at).map_or(0.0, |ticks| *ticks as f64 * tick)
    };
    Ok(RowTurn {
        burst_ns: [share(0.5), share(0.99), share(0.999)],
        mpps: packets as f64 * 1e3 / (ticks.max(1) as f64 * tick),
        packet_ns: calm(&mut all) * tick,
        functions_ns: calm(&mut functions) * tick,
    })
}
