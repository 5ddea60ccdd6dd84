//! `millrace verify`: a function on many cores against the same function on one.

mod traffic;

use clap::{Args, ValueEnum};
use millrace::place::Purpose;
use millrace::{AsRow, Asked, Comparison, Make, Ports};
use millrace_control::contents;
use millrace_place::Strategy;
use millrace_traffic::split::Split;
use millrace_verify::{Findings, Moving, Schedule, text};
use serde::Serialize;

use crate::failure::{DONE, Failure, NO};
use crate::progress::Bar;
use crate::strategy::Wished;
use crate::{budget, function, screen, steer};

/// Run a function on one core and, as its plan says, on many, over the same packets; compare every verdict,
/// every byte, and the state at the end.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 equal, 1 not equal, or no run on so many cores, 2 wrong use. docs/verify.md says what is compared and what may differ.")]
pub struct Verify {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs
    nf: String,

    /// Captures, one for each port, in order; or one, with --split
    #[arg(long = "in", value_name = "FILE", value_delimiter = ',')]
    inputs: Vec<String>,

    /// Let one capture enter at two ports: packets sent from these prefixes enter at this port,
    /// as in lan=10.0.0.0/8
    #[arg(long, value_name = "PORT=CIDR[,CIDR]")]
    split: Option<Split>,

    /// Make the traffic: NAME=VALUE, joined by commas, as the options of `millrace trace gen` are called, as in
    /// packets=100000,flows=1000,churn=5000; port 0 is the LAN
    #[arg(
        long,
        value_name = "NAME=VALUE",
        value_delimiter = ',',
        conflicts_with_all = ["inputs", "split"],
        required_unless_present = "inputs",
        num_args = 0..
    )]
    generate: Option<Vec<String>>,

    /// On how many cores; several numbers are tried one after another
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2")]
    cores: Vec<u32>,

    /// How state lives on several cores
    #[arg(
        long,
        value_name = "STRATEGY",
        value_enum,
        default_value_t,
        conflicts_with = "steer"
    )]
    strategy: Wished,

    /// The NIC's model
    #[arg(long, value_name = "NAME", default_value = "generic")]
    nic: String,

    /// Who gets which packet, in place of what the plan says: `[PORT:]OPTIONS` as in docs/parallel.md; every object
    /// that packets write is divided then
    #[arg(long, value_name = "[PORT:]OPTIONS")]
    steer: Vec<String>,

    /// In what order workers do their packets
    #[arg(long, value_enum, default_value_t = Order::Seeded)]
    schedule: Order,

    /// What keys, random draws and the schedule come from
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Buckets of the indirection table change their workers with their state, at drawn moments, one in so many packets, and now and then the
    /// key of the hash and the number of workers (docs/moving.md)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "20", value_parser = clap::value_parser!(u64).range(1..))]
    moves: Option<u64>,

    /// Stop after this many packets
    #[arg(long, value_name = "N")]
    packets: Option<u64>,

    /// Set a parameter of the function
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Give a state object room for this many entries on the sequential side, which workers share out
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// What a map holds before the first packet, from a file
    #[arg(long = "map", value_name = "NAME=FILE")]
    maps: Vec<String>,

    /// Which program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Most time for the model that the plan is made from, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = millrace_model::SECONDS)]
    time: u64,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A schedule, without its seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Order {
    /// as the packets came in
    Ingress,
    /// workers fall behind each other by chance, as the seed says
    Seeded,
    /// a thread for each worker
    Threads,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    /// at every number of cores
    equal: bool,
    packets: u64,
    /// the largest number of workers
    workers: u32,
    /// of all runs
    differences: Vec<&'a millrace_verify::Difference>,
    seed: u64,
    nic: &'a str,
    runs: &'a [Ran],
    /// a linked function against its elements one after the other, on one core
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<&'a AsRow>,
}

/// One number of cores.
#[derive(Serialize)]
struct Ran {
    cores: u32,
    strategy: Strategy,
    #[serde(flatten)]
    findings: Findings,
}

impl Verify {
    /// Verifies it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if self.cores.contains(&0) {
            return Err(Failure::wrong("--cores 0: no number of cores").help("give at least 1"));
        }
        let make = Make {
            budgets: budget::of(&self.nf),
            ..function::make(&self.set, &self.capacity, self.program.as_ref())?
        };
        let function = function::load(&self.nf, &make)?;
        if function.program.is_none() {
            return Err(Failure::wrong(format!(
                "{}: a module alone does not tell how it may run on many cores",
                self.nf
            ))
            .help("give its source or its object"));
        }
        let between = Ports::captures(&self.inputs, self.split.as_ref());
        let ports = between.names(&function.ports)?;
        let mut trace = traffic::open(self, &between, &ports)?;
        let budget = make.begin();
        let proved = function.check(budget)?;
        let seconds = budget::seconds(self.time, &self.nf);
        let mut model = None;
        let mut secret = [0; 32];
        for (place, byte) in secret.iter_mut().zip(self.seed.to_le_bytes()) {
            *place = byte;
        }
        let found = millrace::find(&self.nf)?;
        // Those of the command line come later.
        let maps = [found.maps(), self.maps.clone()].concat();
        let comparison = Comparison {
            found: &found,
            make: &make,
            function: &function,
            proved: &proved,
            names: &ports,
            entries: &contents::entries(&maps, &function.exposed)?,
            seed: self.seed,
            schedule: match self.schedule {
                Order::Ingress => Schedule::Ingress,
                Order::Seeded => Schedule::Seeded(self.seed),
                Order::Threads => Schedule::Threads,
            },
            moving: self.moves.map(|every| Moving {
                every,
                ..Moving::all(self.seed)
            }),
        };
        let mut runs = Vec::new();
        for cores in &self.cores {
            let model = model.get_or_insert_with(|| {
                let purpose = Purpose::of(self.strategy.0, !self.steer.is_empty());
                proved.model_for(purpose, (seconds, budget), &mut || {
                    function::planning(&function.name);
                })
            });
            let workers = match self.strategy {
                Wished::SEQUENTIAL => 1,
                _ => *cores as usize,
            };
            let asked = Asked {
                cores: workers,
                strategy: self.strategy.0,
                steering: match workers {
                    1 => None,
                    _ => steer::steering(&self.steer, &proved.program.ports, workers)?,
                },
                nic: &self.nic,
                secret: Some(secret),
                ..Asked::default()
            };
            let mut bar = Bar::new();
            let found = comparison.run(model, &asked, trace.as_mut(), &mut |read, share| {
                bar.show(read, share);
            });
            bar.end();
            let (strategy, findings) = found?;
            let told = format!(
                "{} as {} on {cores}: {}",
                function.name,
                strategy.name(),
                text(&findings)
            );
            screen::report(self.json, told.trim_end());
            runs.push(Ran {
                cores: *cores,
                strategy,
                findings,
            });
        }
        let row = found.as_row(
            &function,
            &make,
            (&self.maps, self.seed),
            (trace.as_mut(), ports.len()),
        )?;
        if let Some(row) = &row {
            screen::report(self.json, &told(&function.name, row));
        }
        let equal = runs.iter().all(|r| r.findings.equal) && row.as_ref().is_none_or(|r| r.equal);
        if self.json {
            screen::document(&Document {
                name: &function.name,
                equal,
                packets: runs.first().map_or(0, |r| r.findings.packets),
                workers: runs.iter().map(|r| r.findings.workers).max().unwrap_or(0),
                differences: runs.iter().flat_map(|r| &r.findings.differences).collect(),
                seed: self.seed,
                nic: &self.nic,
                runs: &runs,
                row: row.as_ref(),
            });
        }
        Ok(if equal { DONE } else { NO })
    }
}

/// What the comparison with its elements found, in words.
fn told(name: &str, row: &AsRow) -> String {
    let (packets, left) = (row.packets, row.left);
    match row.differences.as_slice() {
        [] => format!(
            "{name} as one program and as its elements one after the other: equal ({packets} packets, {left} left)"
        ),
        differences => format!(
            "{name} as one program and as its elements one after the other: not equal\n  {}",
            differences.join("\n  ")
        ),
    }
}
