//! `make bench`: what emitted code costs, against what a user would run instead. Everything is a ratio
//! of contenders measured in turns in one run, pinned to one processor: median, and the range that
//! four turns of five lie in. docs/measurements/bench.md says how to read it.
#![allow(
    clippy::indexing_slicing,
    reason = "a benchmark that is wrong may stop"
)]

#[cfg(test)]
mod agreement;
mod classifier;
mod contender;
mod dispatch;
mod guest;
mod kernel;
mod keys;
mod measure;
mod model;
mod moving;
mod plan;
mod replicate;
mod report;
mod start;
mod workload;

use anyhow::Result;
use clap::{Parser, Subcommand};
use millrace_dataplane::clock::Rate;
use millrace_emit::cache::Cache;

use contender::{Contender, FUNCTIONS, Function, Table, by_hand, emitted};
use report::{Row, Section};
use workload::Skew;

#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Turns of each comparison
    #[arg(long, default_value_t = 15)]
    turns: usize,
    /// Only this section: reference, table, gate, kernel, classifier, start, model, plan, keys, guest, replicate, hybrid
    #[arg(long)]
    only: Option<String>,
    /// Only this function
    #[arg(long)]
    function: Option<String>,
    /// Keep the counts of the section `model` in bench/model.txt and the times of the section `plan` in bench/plan.txt,
    /// for later runs to be compared with, and the figures of the section `guest` in bench/guest.txt
    #[arg(long)]
    record: bool,
    /// Print the figures as one JSON document on stdout
    #[arg(long)]
    json: bool,
}

/// What is measured instead of the sections.
#[derive(Subcommand)]
enum What {
    /// Cost of ports to a worker: ns a packet for receiving it and sending it back unprocessed
    Dispatch(dispatch::Dispatch),
    /// All buckets of a worker to another machine: ns of processor time an entry for each step
    Handover(moving::handover::Handover),
    /// Rows for a standby: ns a packet without and with them
    Copies(moving::copies::Copied),
}

/// Live flows: what fits the first-level cache, the second, and neither.
const FLOWS: [u32; 3] = [1000, 64_000, 1_000_000];
const SKEWS: [Skew; 2] = [Skew::Uniform, Skew::Zipf(1.1)];

struct Bench {
    cache: Cache,
    turns: usize,
    record: bool,
    ns_per_tick: f64,
    functions: Vec<Function>,
    /// the function that was asked for
    only: Option<String>,
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::ExitCode::from(2)
        }
    }
}

fn run() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.what {
        Some(What::Dispatch(asked)) => return dispatch::dispatch(asked),
        Some(What::Handover(asked)) => return asked.measure(),
        Some(What::Copies(asked)) => return asked.measure(),
        None => {}
    }
    let rate = Rate::start();
    let processor = measure::pin()?;
    let folder = tempfile::tempdir()?;
    let bench = Bench {
        cache: Cache::at(&folder.path().join("cache"))?,
        turns: arguments.turns.max(1),
        record: arguments.record,
        ns_per_tick: {
            std::thread::sleep(std::time::Duration::from_millis(200));
            rate.ns_per_tick()
        },
        functions: FUNCTIONS
            .iter()
            .copied()
            .filter(|f| {
                arguments
                    .function
                    .as_deref()
                    .is_none_or(|name| name == f.name)
            })
            .collect(),
        only: arguments.function.clone(),
    };
    eprintln!(
        "60-byte packets, bursts of {}, {} turns, pinned to processor {processor}; ns a packet inside the function",
        contender::BURST,
        bench.turns
    );
    let mut sections = Vec::new();
    type Measure = fn(&Bench) -> Result<Section>;
    let all: [(&str, Measure); 12] = [
        ("reference", reference),
        ("table", table),
        ("gate", gate),
        ("kernel", |b| {
            kernel::section(&b.cache, b.turns, b.ns_per_tick)
        }),
        ("classifier", |b| {
            classifier::section(&b.cache, b.turns, b.ns_per_tick)
        }),
        ("start", |b| start::section(b.turns)),
        ("model", |b| model::section(b.turns, b.record)),
        ("plan", |b| plan::section(b.record)),
        ("keys", |b| keys::section(b.turns)),
        ("guest", |b| guest::section(b.turns, b.record)),
        ("replicate", |b| {
            let only: Vec<&str> = b.only.iter().map(String::as_str).collect();
            replicate::section(&b.cache, &only, b.turns)
        }),
        ("hybrid", |b| {
            let only: Vec<&str> = b.only.iter().map(String::as_str).collect();
            replicate::hybrid::section(&b.cache, &only, b.turns)
        }),
    ];
    for (name, measure) in all {
        if arguments.only.as_deref().is_none_or(|only| only == name) {
            let section = measure(&bench)?;
            section.print();
            sections.push(section);
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&sections)?);
    }
    Ok(())
}

impl Bench {
    /// Two contenders over one function, one number of flows, one skew.
    fn pair(
        &self,
        function: &Function,
        flows: u32,
        skew: Skew,
        make: impl Fn(u64) -> Result<[(&'static str, Contender); 2]>,
        bar: (&str, fn(f64) -> bool),
    ) -> Result<Row> {
        let capacity = u64::from(flows).next_power_of_two();
        let [(first, a), (second, b)] = make(capacity)?;
        let mut contenders = [a, b];
        let turns = measure::compare(
            function,
            &mut contenders,
            flows,
            skew,
            self.turns,
            self.ns_per_tick,
        )?;
        let ratio = turns.ratio(0, 1);
        Ok(Row {
            name: function.name.into(),
            flows,
            skew: skew.name(),
            ns: vec![(first.into(), turns.ns(0)), (second.into(), turns.ns(1))],
            ratio,
            bar: bar.0.into(),
            met: bar.1(ratio.median),
        })
    }
}

fn reference(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "reference",
        "Emitted code against the same function by hand, same table, same prefetching: emitted / by hand",
        "bench/reference/*.c",
    );
    for function in &bench.functions {
        for flows in FLOWS {
            for skew in SKEWS {
                let row = bench.pair(
                    function,
                    flows,
                    skew,
                    |capacity| {
                        Ok([
                            ("emitted", emitted(&bench.cache, function, capacity, true)?),
                            (
                                "by hand",
                                by_hand(&bench.cache, function, capacity, Table::Bucketed)?,
                            ),
                        ])
                    },
                    ("at most 1.05", |ratio| ratio <= 1.05),
                )?;
                section.rows.push(row);
            }
        }
    }
    Ok(section)
}

fn table(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "table",
        "Emitted code, bucketed table and prefetch, against linear probing without, by hand: emitted / by hand",
        "bench/reference/open_addressing.h, at most half full",
    );
    for function in &bench.functions {
        for skew in SKEWS {
            let row = bench.pair(
                function,
                FLOWS[2],
                skew,
                |capacity| {
                    Ok([
                        ("emitted", emitted(&bench.cache, function, capacity, true)?),
                        (
                            "by hand",
                            by_hand(&bench.cache, function, capacity, Table::Open)?,
                        ),
                    ])
                },
                ("at most 0.5", |ratio| ratio <= 0.5),
            )?;
            section.rows.push(row);
        }
    }
    Ok(section)
}

fn gate(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "gate",
        "Emitted code with its prefetching passes against itself without: with / without",
        "short functions take them when state outgrows the cache, long ones always",
    );
    for function in &bench.functions {
        for flows in FLOWS {
            let row = bench.pair(
                function,
                flows,
                Skew::Uniform,
                |capacity| {
                    Ok([
                        ("with", emitted(&bench.cache, function, capacity, true)?),
                        ("without", emitted(&bench.cache, function, capacity, false)?),
                    ])
                },
                ("at most 1.02", |ratio| ratio <= 1.02),
            )?;
            section.rows.push(row);
        }
    }
    Ok(section)
}
