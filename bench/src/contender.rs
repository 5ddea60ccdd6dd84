//! What is compared: a function as Millrace emits it, or written by hand, ready to take bursts.

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
    burst: Burst,
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
        Ok(Self {
            instance: Instance::create(module, &config)?,
            burst: Burst::new(BURST, 2, Layout::Pooled),
            prefetch,
            number: 0,
        })
    }

    /// Runs a burst; ticks spent in the function.
    fn flush(&mut self) -> u64 {
        self.instance.burst(0, self.prefetch, &mut self.burst)
    }

    fn push(&mut self, frame: &Frame) {
        let time = (self.number + 1) * GAP;
        let arrival = Arrival {
            number: self.number,
            port: frame.port,
            time,
            stamp: time,
            wire: frame.bytes.len() as u32,
        };
        self.number += 1;
        self.burst.push(&frame.bytes, arrival);
    }

    /// Sends frames; ticks spent in the function, burst by burst.
    pub fn run(&mut self, frames: &[Frame]) -> Vec<u64> {
        let burst = |chunk: &[Frame]| {
            self.burst.clear();
            for frame in chunk {
                self.push(frame);
            }
            self.flush()
        };
        frames.chunks(BURST).map(burst).collect()
    }

    /// Sends frames and tells what became of each.
    pub fn fates(&mut self, frames: &[Frame]) -> Result<Vec<(Fate, Vec<u8>)>> {
        let mut fates = Vec::new();
        for chunk in frames.chunks(BURST) {
            self.burst.clear();
            for frame in chunk {
                self.push(frame);
            }
            self.flush();
            for i in 0..chunk.len() {
                let outcome = self
                    .burst
                    .outcome(i)
                    .ok_or_else(|| anyhow!("a packet is missing"))?;
                fates.push((outcome.fate, outcome.bytes.to_vec()));
            }
        }
        Ok(fates)
    }
}
