//! Measuring several contenders in one run: in turns, over the same packets, so that a machine that
//! slows down slows all of them.

use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use millrace_dataplane::packet::Fate;
use rustix::thread::CpuSet;
use serde::Serialize;

use crate::contender::{BURST, Contender, Function};
use crate::workload::{Frame, Order, Skew};

/// Packets a turn; long enough that what the turn before left in the caches does not matter.
const TURN: usize = 1 << 16;
/// Packets before each turn that are not measured.
const WARM: usize = 1 << 13;

/// Nanoseconds a packet over the turns, or a ratio of two contenders turn by turn.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figure {
    /// the middle one
    pub median: f64,
    /// a tenth of the turns were below
    pub low: f64,
    /// a tenth were above
    pub high: f64,
}

impl Figure {
    /// From at least one value.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
        Self {
            median: at(0.5),
            low: at(0.1),
            high: at(0.9),
        }
    }

    /// In another unit, of which one of this is this many.
    pub fn times(self, by: f64) -> Self {
        Self {
            median: self.median * by,
            low: self.low * by,
            high: self.high * by,
        }
    }
}

/// Every turn of every contender, nanoseconds a packet: `[contender][turn]`.
pub struct Turns(Vec<Vec<f64>>);

impl Turns {
    /// Nanoseconds a packet.
    pub fn ns(&self, contender: usize) -> Figure {
        Figure::of(&self.0[contender])
    }

    /// How long `contender` took of what `other` took, turn by turn.
    pub fn ratio(&self, contender: usize, other: usize) -> Figure {
        let pairs = self.0[contender].iter().zip(&self.0[other]);
        Figure::of(&pairs.map(|(a, b)| a / b).collect::<Vec<_>>())
    }
}

/// Opens all flows in every contender, asserts that they agree on what becomes of the packets, and
/// measures them in turns.
pub fn compare(
    function: &Function,
    contenders: &mut [Contender],
    flows: u32,
    skew: Skew,
    turns: usize,
    ns_per_tick: f64,
) -> Result<Turns> {
    for flow in 0..flows {
        let opening = function.traffic.opening(flow);
        for contender in contenders.iter_mut() {
            contender.run(&opening);
        }
    }
    let mut order = Order::new(flows, skew);
    let mut draw = |count: usize| -> Vec<Frame> {
        (0..count)
            .map(|_| {
                let (flow, answer) = order.next();
                function.traffic.frame(flow, answer)
            })
            .collect()
    };
    agree(function, contenders, &draw(WARM))?;

    let mut ns = vec![Vec::with_capacity(turns); contenders.len()];
    for turn in 0..turns {
        let (warm, measured) = (draw(WARM), draw(TURN));
        for i in 0..contenders.len() {
            let who = (i + turn) % contenders.len();
            contenders[who].run(&warm);
            let ticks = contenders[who].run(&measured);
            ns[who].push(per_packet(ticks) * ns_per_tick);
        }
    }
    Ok(Turns(ns))
}

/// Ticks a packet: the mean over the bursts, the slowest twentieth left out, during which the machine
/// was doing something else.
pub fn per_packet(mut bursts: Vec<u64>) -> f64 {
    bursts.sort_unstable();
    let kept = &bursts[..bursts.len() - bursts.len() / 20];
    kept.iter().sum::<u64>() as f64 / (kept.len() * BURST) as f64
}

/// The reason of a drop has a number of its own in each program: that it is dropped must agree.
fn agree(function: &Function, contenders: &mut [Contender], frames: &[Frame]) -> Result<()> {
    let plain = |fate: Fate| {
        if let Fate::Dropped(_) = fate {
            Fate::Dropped(0)
        } else {
            fate
        }
    };
    let mut first: Option<Vec<(Fate, Vec<u8>)>> = None;
    for contender in contenders {
        let fates: Vec<(Fate, Vec<u8>)> = contender
            .fates(frames)?
            .into_iter()
            .map(|(f, b)| (plain(f), b))
            .collect();
        match &first {
            None => first = Some(fates),
            Some(expected) => {
                if let Some(at) = (0..fates.len()).find(|&i| fates[i] != expected[i]) {
                    bail!(
                        "{}: the contenders disagree on packet {at}: {:?} and {:?}",
                        function.name,
                        expected[at].0,
                        fates[at].0
                    );
                }
            }
        }
    }
    Ok(())
}

/// The processors that this process might run on when it began.
fn all() -> Result<CpuSet> {
    static ALL: OnceLock<CpuSet> = OnceLock::new();
    match ALL.get() {
        Some(all) => Ok(*all),
        None => {
            let all = rustix::thread::sched_getaffinity(None).context("which processors?")?;
            Ok(*ALL.get_or_init(|| all))
        }
    }
}

/// How many there are, this thread pinned or not.
pub fn processors() -> Result<usize> {
    Ok(all()?.count() as usize)
}

/// Pins this thread to the last processor: interrupts go to the first.
pub fn pin() -> Result<usize> {
    let all = all()?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|n| all.is_set(*n));
    let last = last.context("there is no processor")?;
    pin_to(last)?;
    Ok(last)
}

/// Pins this thread to a processor.
pub fn pin_to(processor: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("cannot pin to processor {processor}"))
}

/// Lets this thread run on all processors again.
pub fn unpin() -> Result<()> {
    rustix::thread::sched_setaffinity(None, &all()?).context("cannot run on all processors")
}
