//! How fast each strategy runs on how many cores: from what was measured on a machine, with a trace, to
//! packets a second. Nothing is measured here; numbers go in, numbers come out.
//!
//! # The formula
//!
//! All packets of the trace are given to `n` workers, and the run is over when the busiest is done. With
//!
//! - `d`, what receiving and sending a packet costs its worker, ns ([`Measured::dispatch_ns`]),
//! - `c`, what the function costs a packet on one worker, under its lock if it has one, ns ([`Work::packet_ns`]),
//! - `b(n)`, the part of the packets that the busiest of `n` workers has, 1/n to 1 ([`Work::busiest`]),
//! - `w`, the part of the packets that write shared state, 0 to 1 ([`Work::writes`]),
//! - `x`, for how long a writer has the lock with nobody else at it, ns: `c` and [`LockCost::writer_ns`],
//! - `s`, by how much longer for each further core, whose line it has to get, ns ([`LockCost::core_ns`]),
//!
//! the busiest worker needs, for each packet that all workers together receive,
//!
//! ```text
//! T(n) = b(n) (d + c) + w ((1 - b(n)) x + (n - 1) s)      ns
//! ```
//!
//! and the rate is `1000 / T(n)` million packets a second. The first term is its own packets. The second is
//! time in which it waits: for the packets that others write (its own are in `c`, which was measured with
//! them), and for lines to go from core to core, its own writes included. With `w = 0` this is `spread` and
//! `shard`; with `b = 1/n` it is Amdahl's law (Validity of the single processor approach to achieving large
//! scale computing capabilities, AFIPS 1967) with the writers as the serial part, and a serial part that grows
//! with the cores. The limit of many cores is `1 / heaviest` times one core's rate for `shard`, and below
//! `1000 / (w x)` for `lock`.
//!
//! What is replicated has its packets on all cores in turn, and each core has the rows of all others beside its own packets: with
//!
//! - `r`, what a row costs that another core's packet left ([`Work::replay_ns`]),
//! - `q`, what the sequencer spends on making a packet's row ([`Work::sequencer_ns`]); it is part of the NIC, so that it delays nobody and costs no
//!   worker anything,
//!
//! ```text
//! T(n) = max(q, (d + c + (n - 1) r) / n)      ns
//! ```
//!
//! (Xu et al., State-Compute Replication, appendix A). It does not depend on how packets are divided among flows, grows with the
//! cores exactly while `d + c > r`, and ends at `1000 / r`. A sequencer in software, a core in front of the others, receives
//! each packet: its `q` is more by `d`.
//!
//! Where only heavy keys are replicated and others sharded, with
//!
//! - `e`, the part of the packets whose keys are replicated, and `b`, the part that the busiest core has of the rest
//!   ([`HeavyShare`]), both as the choice of heavy keys leaves them with the trace,
//! - `h`, what the function costs a packet with its row ([`HeavyWork::packet_ns`]),
//!
//! ```text
//! T(n) = max(e q, b (d + c) + e (d + h + (n - 1) r) / n)      ns
//! ```
//!
//! Where some objects are replicated and others sharded, a packet goes to the core that has its part, and the others have its row, if
//! it has one; `r` is the mean over all packets:
//!
//! ```text
//! T(n) = max(q, b(n) (d + c) + (1 - b(n)) r)      ns
//! ```
//!
//! Where packets are transactions, a packet that finds an entry which another core has written waits for its line, and one that meets
//! another core's runs again. With
//!
//! - `f(n)`, the part of the packets of which another core has written a word since this core touched it ([`Work::foreign`]),
//! - `m(n)`, the part of the packets that meet one of another core: of the `n` packets that run at a time, one at each core, another
//!   one writes what it reads or writes ([`Work::met`]); both are counted on the trace, from what each packet reads and writes,
//! - `l`, for how long a line goes from core to core, ns ([`Measured::line_ns`]),
//! - `w`, the part of the packets that run alone,
//!
//! ```text
//! T(n) = b(n) (d + c + f(n) l + m(n) c) + w ((1 - b(n)) x + (n - 1) s)      ns
//! ```
//!
//! # What it leaves out
//!
//! A core's part of the state fits its cache better than the whole does, and memory bandwidth is shared: both
//! are as they were on one core. A worker that is in its driver while another writes does not wait, so `lock`
//! is predicted too low where `d` is large beside `c`. What a writer changed is read again from its core's
//! cache by the others: only what `s` has of it. Packets that go over a ring to their owner are not charged
//! the ring.

mod predict;
mod text;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use predict::{best, predict};
pub use text::text;

use millrace_place::Strategy;

/// Numbers of cores that a table shows.
pub const CORES: [u32; 5] = [1, 2, 4, 8, 16];

/// Cost of the lock on a machine.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LockCost {
    /// a packet that writes beside one that only reads, one worker: the run that is broken off, and all
    /// lines of the lock; ns
    pub writer_ns: f64,
    /// what each further core adds to the time for which a writer keeps all others out, ns; none where there
    /// is no second processor to measure it with
    pub core_ns: Option<f64>,
    /// workers that it was measured with
    pub cores: u32,
}

/// Result of one strategy for the trace on one worker, and its division over several.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Work {
    /// the strategy
    pub strategy: Strategy,
    /// time of a packet inside the function, the mean over the trace's second half, ns
    pub packet_ns: f64,
    /// the part of the packets that write shared state, over the same packets, 0 to 1; 0 where nothing is shared. Of transactions,
    /// those that run alone
    pub writes: f64,
    /// for numbers of cores, ascending, the part of the packets that the busiest worker has, 0 to 1, the
    /// indirection table balanced to the trace
    pub busiest: Vec<Share>,
    /// the part of the packets that the heaviest entry of the indirection table has, 0 to 1: no table makes
    /// the busiest worker's part smaller
    pub heaviest: f64,
    /// where packets are transactions, for numbers of cores: the part of the packets that find a word which another core has written
    /// since theirs touched it, 0 to 1
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<Share>,
    /// likewise: the part of the packets that meet one of another core
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub met: Vec<Share>,
    /// what the row of another core's packet costs, ns; none but for what is replicated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_ns: Option<f64>,
    /// what the sequencer spends on making a packet's row, ns; none but for what is replicated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequencer_ns: Option<f64>,
    /// of heavy keys, where only these are replicated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heavy: Option<HeavyWork>,
}

/// Heavy keys of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HeavyWork {
    /// time of a packet with its row inside the function, ns
    pub packet_ns: f64,
    /// for numbers of cores
    pub shares: Vec<HeavyShare>,
}

/// Parts of the packets where heavy keys are replicated.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct HeavyShare {
    /// on this many workers
    pub cores: u32,
    /// of sharded keys, at the busiest worker, 0 to 1
    pub sharded: f64,
    /// of replicated keys, over all workers, 0 to 1
    pub replicated: f64,
}

/// The busiest worker's part.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Share {
    /// of this many workers
    pub cores: u32,
    /// 0 to 1
    pub share: f64,
}

/// Why a strategy has no figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unmeasured {
    /// the strategy
    pub strategy: Strategy,
    /// why
    pub why: String,
}

/// Measurement of a program, on a machine, with a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// the trace
    pub trace: String,
    /// its packets, or as many of them as were looked at
    pub packets: u64,
    /// processors of the machine: what is predicted for more of them is simulated
    pub processors: u32,
    /// what receiving and sending a packet costs a worker, ns
    pub dispatch_ns: f64,
    /// of which port
    pub port: String,
    /// what the lock costs; none where no strategy has one
    pub lock: Option<LockCost>,
    /// for how long a line goes from one core's cache to another's, ns; none where there is no second processor to measure it with, or
    /// no packets are transactions
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_ns: Option<f64>,
    /// by strategy, in the order of preference where figures are alike
    pub strategies: Vec<Work>,
    /// strategies that could not be measured
    pub unmeasured: Vec<Unmeasured>,
}

impl Measured {
    /// What a row of another core's packet costs, as a part of what a packet with its own row does with receiving and sending it;
    /// none where nothing was replicated.
    #[must_use]
    pub fn row(&self) -> Option<f64> {
        let replicated = self.strategies.iter();
        let replicated = replicated.filter(|w| w.strategy == Strategy::Replicate);
        replicated
            .filter_map(|w| Some(w.replay_ns? / (self.dispatch_ns + w.packet_ns).max(1.0)))
            .next()
    }
}

/// Expected rate of a strategy on this many cores.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Prediction {
    /// the strategy
    pub strategy: Strategy,
    /// workers
    pub cores: u32,
    /// million packets a second
    pub mpps: f64,
    /// more cores than the machine has on which it was measured: continued with the cost model
    pub simulated: bool,
}
