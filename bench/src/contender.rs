//! Contenders of a comparison: a function as Millrace emits it, or written by hand, ready to take bursts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{self, ModuleOptions};

use crate::workload::{Frame, Traffic};

/// Packets a burst.
pub const BURST: usize = 32;
/// Bursts that are filled before the first of them runs, as a receive queue is: a packet that was
/// written by this processor a moment ago would be read out of its store buffer.
const QUEUE: usize = 8;
/// Nanoseconds from one packet to the next: 10 million packets a second.
const GAP: u64 = 100;

/// A measured function: what it is called, what its table is called, what it is sent.
#[derive(Clone, Copy)]
pub struct Function {
    /// folder in nfs/, file in bench/reference/
    pub name: &'static str,
    /// the object whose capacity follows the number of flows
    pub table: &'static str,
    /// what it is sent
    pub traffic: Traffic,
    /// settings that keep it on the measured way
    pub settings: &'static [(&'static str, &'static str)],
}

/// The functions whose time goes into a table of flows.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "portknock",
        table: "sources",
        traffic: Traffic::Sources,
        settings: &[],
    },
    Function {
        name: "heavyhitter",
        table: "flows",
        traffic: Traffic::Outbound,
        settings: &[("threshold", "0xffffffffffffffff")],
    },
    Function {
        name: "policer",
        table: "buckets",
        traffic: Traffic::Inbound,
        settings: &[],
    },
    Function {
        name: "firewall",
        table: "flows",
        traffic: Traffic::BothWays,
        settings: &[],
    },
    Function {
        name: "cl",
        table: "flows",
        traffic: Traffic::Outbound,
        settings: &[],
    },
];

/// A running copy and the burst it works on.
pub struct Contender {
    instance: Instance,
    queue: Vec<Burst>,
    prefetch: bool,
    number: u64,
}

/// Where the repository is.
pub fn root() -> PathBuf {
    millrace_tests::command::root()
}

/// The function as Millrace emits it, its table resized to `capacity`.
pub fn emitted(
    cache: &Cache,
    function: &Function,
    capacity: u64,
    prefetch: bool,
) -> Result<Contender> {
    let source = root().join(format!("nfs/{0}/{0}.c", function.name));
    let settings: Vec<(String, String)> = function
        .settings
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect();
    let options = millrace_emit::Options {
        capacities: vec![(function.table.to_owned(), capacity)],
        ..millrace_emit::Options::default()
    };
    let built = millrace_emit::build(cache, &source, &settings, &options, &mut |_| {})?;
    let initial = built
        .program
        .objects
        .iter()
        .map(|o| o.initial.clone())
        .collect();
    Contender::load(&built.module, initial, prefetch)
}

/// What the hand-written functions are built over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// fastpath/state/hash.h, with the prefetching passes
    Bucketed,
    /// linear probing without prefetching (bench/reference/open_addressing.h)
    Open,
}

/// The function as a C programmer writes it.
pub fn by_hand(
    cache: &Cache,
    function: &Function,
    capacity: u64,
    table: Table,
) -> Result<Contender> {
    let folder = tempfile::tempdir()?;
    let wrapper = folder.path().join(format!("{}.c", function.name));
    let open = if table == Table::Open {
        "#define OPEN_ADDRESSING\n"
    } else {
        ""
    };
    let reference = root().join("bench/reference");
    std::fs::write(
        &wrapper,
        format!(
            "#define CAPACITY {capacity}\n{open}#include \"{}\"\n",
            reference.join(format!("{}.c", function.name)).display()
        ),
    )?;
    let module = folder.path().join("reference.so");
    let fastpath = cache.headers()?.join("fastpath");
    let tools = toolchain::find(cache)?;
    toolchain::compile_module(
        &tools,
        &wrapper,
        &fastpath,
        &module,
        ModuleOptions::default(),
    )
    .with_context(|| format!("bench/reference/{}.c", function.name))?;
    Contender::load(&module, Vec::new(), true)
}

impl Contender {
    fn load(module: &Path, initial: Vec<Option<Vec<u8>>>, prefetch: bool) -> Result<Self> {
        let module = Arc::new(Module::load(module)?);
        let config = Config {
            hash_seed: 1,
            sketch_seed: 2,
            time: 0,
            initial,
            ..Config::default()
        };
        let mut instance = Instance::create(module, &config)?;
        instance.start(0);
        Ok(Self {
            instance,
            queue: (0..QUEUE)
                .map(|_| Burst::new(BURST, 2, Layout::Pooled))
                .collect(),
            prefetch,
            number: 0,
        })
    }

    /// Fills the queue, up to its end.
    fn fill(&mut self, frames: &[Frame]) {
        self.queue.iter_mut().for_each(Burst::clear);
        for (chunk, burst) in frames.chunks(BURST).zip(&mut self.queue) {
            for frame in chunk {
                let time = (self.number + 1) * GAP;
                let arrival = Arrival {
                    number: self.number,
                    port: frame.port,
                    time,
                    stamp: time,
                    wire: frame.bytes.len() as u32,
                    home: 0,
                    place: 0,
                };
                self.number += 1;
                burst.push(&frame.bytes, arrival);
            }
        }
    }

    /// Sends frames, whole bursts of them; ticks spent in the function, burst by burst.
    pub fn run(&mut self, frames: &[Frame]) -> Vec<u64> {
        let mut ticks = Vec::with_capacity(frames.len() / BURST + 1);
        for chunk in frames.chunks(QUEUE * BURST) {
            self.fill(chunk);
            for burst in self.queue.iter_mut().filter(|b| !b.is_empty()) {
                ticks.push(self.instance.burst(0, self.prefetch, burst));
            }
        }
        ticks
    }

    /// Sends one burst of any frames, and tells what became of each.
    #[cfg(test)]
    pub fn burst(&mut self, frames: &[(u32, Vec<u8>)]) -> Result<Vec<(Fate, Vec<u8>)>> {
        let burst = self.queue.first_mut().ok_or_else(|| anyhow!("no queue"))?;
        burst.clear();
        for (port, frame) in frames {
            let time = (self.number + 1) * GAP;
            let arrival = Arrival {
                number: self.number,
                port: *port,
                time,
                stamp: time,
                wire: frame.len() as u32,
                home: 0,
                place: 0,
            };
            self.number += 1;
            burst.push(frame, arrival);
        }
        self.instance.burst(0, self.prefetch, burst);
        let outcomes = (0..burst.len()).map(|i| burst.outcome(i));
        Ok(outcomes
            .flatten()
            .map(|o| (o.fate, o.bytes.to_vec()))
            .collect())
    }

    /// Sends frames and tells what became of each.
    pub fn fates(&mut self, frames: &[Frame]) -> Result<Vec<(Fate, Vec<u8>)>> {
        let mut fates = Vec::new();
        for chunk in frames.chunks(QUEUE * BURST) {
            self.fill(chunk);
            for burst in &mut self.queue {
                self.instance.burst(0, self.prefetch, burst);
                for i in 0..burst.len() {
                    let outcome = burst
                        .outcome(i)
                        .ok_or_else(|| anyhow!("a packet is missing"))?;
                    fates.push((outcome.fate, outcome.bytes.to_vec()));
                }
            }
        }
        Ok(fates)
    }
}
