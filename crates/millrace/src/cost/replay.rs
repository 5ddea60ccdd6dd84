//! The cost of a module for a packet of a trace, on one worker.

use std::sync::Arc;

use millrace_dataplane::Config;
use millrace_dataplane::clock::Rate;
use millrace_dataplane::module::{Instance, Module};
use millrace_dataplane::packet::{Burst, Layout};
use millrace_dataplane::runner::BURST;

use super::trace::Frames;
use crate::{Error, Function};

/// Bursts that are filled before the first of them runs, as a receive queue is: a packet that was written a
/// moment ago would be read out of the store buffer.
pub const QUEUE: usize = 8;
/// Packets that a figure is over, at least: a short trace is replayed several times.
pub const PACKETS: usize = 20_000;
/// But not more often than this, each time with fresh state.
pub const ROUNDS: usize = 32;

/// A module that is measured.
pub struct Subject {
    /// the code
    pub module: Arc<Module>,
    /// what its state begins with
    pub config: Config,
    /// which packet entry of the module
    pub entry: usize,
    /// ports of the function
    pub ports: u32,
}

impl Subject {
    /// A function as it is on one worker, with this many ports.
    #[must_use]
    pub fn of(function: &Function, ports: u32) -> Self {
        let mut subject = Self::on_workers(function, ports);
        // The packets of a trace in memory have not passed the hash that says where they are at home.
        subject.config.homes = None;
        subject
    }

    /// A function as it is on the workers that it was built for.
    #[must_use]
    pub fn on_workers(function: &Function, ports: u32) -> Self {
        Self {
            module: function.module.clone(),
            config: function.state(0, Vec::new()),
            entry: function.entry,
            ports,
        }
    }
}

/// Result of one turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// ns a packet inside the module, the slowest twentieth of the bursts left out
    pub packet_ns: f64,
    /// the part of the packets that wrote shared state
    pub writes: f64,
    /// ns that a row of another core's packet takes, for each packet; of replicas
    pub replay_ns: Option<f64>,
    /// ns that the sequencer spends on a packet; of replicas
    pub sequencer_ns: Option<f64>,
}

/// Replays the trace on fresh state. Its first half brings the state to what it usually is and is not counted:
/// a flow that a capture begins in the middle of is not new.
///
/// # Errors
/// The state cannot be made.
pub fn turn(subject: &Subject, frames: &Frames) -> Result<Turn, Error> {
    let half = frames.packets() / 2;
    let rounds = PACKETS.div_ceil(frames.packets() - half).clamp(1, ROUNDS);
    let rate = Rate::start();
    let mut queue: Vec<Burst> = (0..QUEUE)
        .map(|_| Burst::new(BURST, subject.ports, Layout::Pooled))
        .collect();
    let (mut ticks, mut writes, mut packets) = (Vec::new(), 0_u64, 0_u64);
    for _ in 0..rounds {
        let mut config = subject.config.clone();
        config.time = frames.start();
        let mut instance = Instance::create(subject.module.clone(), &config)
            .map_err(|e| Error::wrong(e).help("declare a smaller capacity, or free memory"))?;
        let shares = subject.module.orders();
        instance.start(config.time);
        let mut next = 0;
        while next < frames.packets() {
            let counted = next >= half;
            for burst in &mut queue {
                burst.clear();
                while next < frames.packets() && frames.push(next, burst) {
                    next += 1;
                }
            }
            for burst in queue.iter_mut().filter(|b| !b.is_empty()) {
                let took = instance.burst(subject.entry, true, burst);
                if !counted {
                    continue;
                }
                ticks.push(took as f64 / burst.len() as f64);
                packets += burst.len() as u64;
                if shares {
                    writes += wrote(burst);
                }
            }
        }
        instance.stop(config.time);
    }
    let mean = calm(&mut ticks);
    Ok(Turn {
        packet_ns: mean * rate.ns_per_tick(),
        writes: writes as f64 / packets.max(1) as f64,
        replay_ns: None,
        sequencer_ns: None,
    })
}

/// The mean without the slowest twentieth.
pub fn calm(ticks: &mut Vec<f64>) -> f64 {
    ticks.sort_by(f64::total_cmp);
    ticks.truncate((ticks.len() * 19).div_ceil(20));
    ticks.iter().sum::<f64>() / ticks.len().max(1) as f64
}

/// How many packets of a burst that went through a module with a lock wrote shared state, or as transactions ran alone: their
/// numbers in the order of commits are even (fastpath/sync/lock.h).
pub fn wrote(burst: &Burst) -> u64 {
    let commits = (0..burst.len()).filter_map(|i| burst.commit(i));
    commits.filter(|c| *c > 0 && c % 2 == 0).count() as u64
}
