//! What a standby costs the worker: a function without notes of what changes, and with them and with a worker's part that tells rows to a sink.
//!
//! Packets are in memory and no device is there; what is timed, by the thread's processor time, is the function and, behind each burst, the telling.
//! Both take turns, and time in packets goes as fast as they are meant to come, so that refreshes are as frequent as they would be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, anyhow};
use clap::Args;
use millrace::Ports;
use millrace::cost::Frames;
use millrace_dataplane::copies::{Copier, Copies, Following};
use millrace_dataplane::module::Instance;
use millrace_dataplane::packet::{Burst, Layout};
use millrace_dataplane::runner::BURST;
use millrace_dataplane::worker::Moves;
use millrace_traffic::generate::Spec;
use rustix::time::{ClockId, clock_gettime};

use super::made::{Made, SPLIT, made, trace};
use crate::measure::pin_to;

/// Bursts that are filled before the first of them runs, as a receive queue is.
const QUEUE: usize = 8;
/// ns after which a worker tells again, and of how many parts of its time it tells in one at most, as `millrace_dataplane::copies` has them.
const PERIOD: u64 = 1_000_000;
const SHARE: u64 = 9;
/// What took longer than this, ns, has told something.
const TOLD: u64 = 3000;

/// Processor time of this thread, ns.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

static NEVER: AtomicBool = AtomicBool::new(false);

#[derive(Args)]
pub struct Copied {
    /// FUNCTION, or FUNCTION:OBJECT=N,… with the room of its objects
    #[arg(default_values = ["firewall", "nat", "conntrack", "policer"])]
    functions: Vec<String>,
    /// Packets of a trace
    #[arg(long, default_value_t = 400_000)]
    packets: u64,
    /// Flows of it
    #[arg(long, default_value_t = 10_000)]
    flows: u64,
    /// New flows a second, by traces: each in a table of its own
    #[arg(long, value_delimiter = ',', default_value = "0,10000,100000")]
    churn: Vec<u64>,
    /// Packets a second that time in packets is of
    #[arg(long, default_value_t = 5e6)]
    rate: f64,
    /// How often the trace is replayed over one state, the first time uncounted
    #[arg(long, default_value_t = 60)]
    rounds: u64,
    /// How often both are measured
    #[arg(long, default_value_t = 7)]
    turns: usize,
    /// The processor that is measured on
    #[arg(long, default_value_t = 1)]
    cpu: usize,
}

/// Takes all rows, and counts them.
struct Sink {
    following: Arc<Following>,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Copies for Sink {
    fn step(&self) -> u64 {
        1
    }

    fn following(&self) -> Arc<Following> {
        self.following.clone()
    }

    fn room(&self, to: &mut Vec<(u32, usize)>) {
        to.push((1, 4 << 20));
    }

    fn deferred(&self, _: u64) {}

    fn send(&self, _: u32, bytes: Vec<u8>, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

/// Of a packet, on average.
#[derive(Clone, Copy, Default)]
struct Seen {
    ns: f64,
    /// of it for telling rows
    telling: f64,
    rows: f64,
    bytes: f64,
}

impl Copied {
    pub fn measure(&self) -> Result<()> {
        pin_to(self.cpu)?;
        let folder = tempfile::tempdir()?;
        for churn in &self.churn {
            let spec = Spec {
                packets: self.packets,
                flows: self.flows,
                churn: *churn as f64 * 60.0,
                rate: self.rate,
                connections: false,
                ..Spec::default()
            };
            let file = trace(&folder.path().join(format!("{churn}.pcap")), spec)?;
            println!(
                "{} flows, {churn} new ones a second, {:.1} Mpps:",
                self.flows,
                self.rate / 1e6
            );
            for function in &self.functions {
                self.function(function, &file)?;
            }
        }
        Ok(())
    }

    fn function(&self, word: &str, file: &str) -> Result<()> {
        let both = [made(word, 1, false)?, made(word, 1, true)?];
        let ports = Ports::captures(&[file.to_owned()], Some(&SPLIT.parse()?));
        let names = ["lan", "wan"].map(str::to_owned);
        let frames = Frames::read(&ports, &names, &NEVER).map_err(|e| anyhow!("{e}"))?;
        let mut seen = [Vec::new(), Vec::new()];
        for turn in 0..self.turns {
            for which in [turn % 2, 1 - turn % 2] {
                seen[which].push(self.turn(&both[which], &frames, which == 1)?);
            }
        }
        let mut ratios: Vec<f64> = seen[0]
            .iter()
            .zip(&seen[1])
            .map(|(without, with)| with.ns / without.ns)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let median = |of: &[Seen], value: &dyn Fn(&Seen) -> f64| {
            let mut all: Vec<f64> = of.iter().map(value).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let [without, with] = &seen;
        println!(
            "    {:12} {:6.1} ns without, {:6.1} with: {:.3} ({:.3} and {:.3}: quartiles), {:.1} of it for telling; {:.4} rows and {:.2} bytes a packet",
            both[0].function.name,
            median(without, &|s| s.ns),
            median(with, &|s| s.ns),
            ratios[ratios.len() / 2],
            ratios[ratios.len() / 4],
            ratios[ratios.len() - 1 - ratios.len() / 4],
            median(with, &|s| s.telling),
            median(with, &|s| s.rows),
            median(with, &|s| s.bytes),
        );
        Ok(())
    }

    fn turn(&self, of: &Made, frames: &Frames, copied: bool) -> Result<Seen> {
        let (function, module) = (&of.function, &of.function.module);
        let mut config = function.state(0, Vec::new());
        config.time = frames.start();
        let homes: Vec<u32> = config.homes.as_ref().map_or(Vec::new(), |homes| {
            frames
                .all()
                .map(|(frame, port)| homes.of(port, frame))
                .collect()
        });
        let mut instance = Instance::create(module.clone(), &config).map_err(|e| anyhow!("{e}"))?;
        let sink = Arc::new(Sink {
            following: Arc::new(Following {
                version: 1,
                generation: 0,
                to: vec![1; of.classes.count()],
                arrivals: vec![0; of.classes.count()],
            }),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        let copies: Arc<dyn Copies> = sink.clone();
        let moves = Moves {
            classes: of.classes.clone(),
            contents: of.contents.clone(),
            module: module.clone(),
            copies: Some(copies.clone()),
        };
        let mut copier = copied.then(|| Copier::new(&copies, &moves, 0));
        let mut queue: Vec<Burst> = (0..QUEUE)
            .map(|_| Burst::new(BURST, 2, Layout::Pooled))
            .collect();
        let (mut took, mut packets) = (0, 0_u64);
        let mut before = (0, 0);
        // Filling bursts and waiting for the processor are no time of a worker's: it tells by the time that is measured.
        let (mut elapsed, mut tells, mut telling_all) = (0, 0, 0);
        instance.start(config.time);
        for round in 0..=self.rounds {
            if round == 1 {
                (took, packets, telling_all) = (0, 0, 0);
                before = (
                    sink.rows.load(Ordering::Relaxed),
                    sink.bytes.load(Ordering::Relaxed),
                );
            }
            let mut next = 0;
            while next < frames.packets() {
                for burst in &mut queue {
                    burst.clear();
                    let home = |at: usize| homes.get(at).copied().unwrap_or(0);
                    while next < frames.packets()
                        && frames.push_later(next, round * frames.round(), home(next), burst)
                    {
                        next += 1;
                    }
                }
                let began = now();
                for burst in queue.iter_mut().filter(|b| !b.is_empty()) {
                    instance.burst(function.entry, true, burst);
                    packets += burst.len() as u64;
                    if let Some(copier) = &mut copier {
                        copier.received();
                    }
                }
                let mut spent = now() - began;
                if let Some(copier) = copier.as_mut().filter(|_| elapsed + spent >= tells) {
                    let told = now();
                    copier.act(&mut instance);
                    let telling = now() - told;
                    spent += telling;
                    telling_all += telling;
                    // As `act` does by the clock, where that has come so far; it is ahead of this one as a rule.
                    if telling > TOLD {
                        tells = elapsed + spent + PERIOD.max(telling * SHARE);
                    }
                }
                elapsed += spent;
                took += spent;
            }
        }
        instance.stop(config.time);
        let count = |of: &AtomicU64, before: u64| {
            (of.load(Ordering::Relaxed) - before) as f64 / packets as f64
        };
        Ok(Seen {
            ns: took as f64 / packets as f64,
            telling: telling_all as f64 / packets as f64,
            rows: count(&sink.rows, before.0),
            bytes: count(&sink.bytes, before.1),
        })
    }
}
