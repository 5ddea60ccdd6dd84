//! `millrace verify`: a function on many cores against the same function on one.

mod deal;
mod traffic;

use std::sync::Arc;

use clap::{Args, ValueEnum};
use millrace_control::{Exposed, contents};
use millrace_dataplane::module::{Config, Module};
use millrace_dataplane::runner::Progress;
use millrace_place::Strategy;
use millrace_traffic::split::Split;
use millrace_verify::{Build, Case, Findings, Names, Schedule, VerifyError, Wanted, text, verify};
use serde::Serialize;

use crate::failure::{DONE, Failure, NO};
use crate::function::{self, Function, Make};
use crate::parallel::{self, planned};
use crate::progress::Bar;
use crate::strategy::Wished;
use crate::wiring::{self, Words};
use crate::{screen, seed};

/// Run a function on one core and, as its plan says, on many, over the same packets; compare every verdict,
/// every byte, and the state at the end.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 equal, 1 not equal, or no run on so many cores, 2 wrong use. docs/verify.md says what is compared and what may differ.")]
pub struct Verify {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs or $MILLRACE_NFS
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
    json: bool,
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
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Verifies it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if self.cores.contains(&0) {
            return Err(Failure::wrong("--cores 0: no number of cores").help("give at least 1"));
        }
        let function = Function::load(&self.nf, &self.make())?;
        let Some(program) = &function.program else {
            return Err(Failure::wrong(format!(
                "{}: a module alone does not tell how it may run on many cores",
                self.nf
            ))
            .help("give its source or its object"));
        };
        let words = Words {
            inputs: &self.inputs,
            outputs: &[],
            split: self.split.as_ref(),
            pass: None,
        };
        let ports = wiring::port_names(&function.ports, &words)?;
        let mut trace = traffic::open(self, &ports)?;
        let budget = crate::budget::begin();
        let checked = function::proved(&self.nf, program, budget)?;
        let mut model = None;
        let entries = contents::entries(&self.maps, &function.exposed);
        let entries = entries.map_err(|t| {
            let failure = Failure::wrong(&t.what);
            match &t.help {
                Some(help) => failure.help(help),
                None => failure,
            }
        })?;
        let mut runs = Vec::new();
        for cores in &self.cores {
            let model = model.get_or_insert_with(|| {
                let asked = parallel::strategies(self.strategy, &self.steer);
                planned::model(program, &checked, (self.time, budget), asked)
            });
            let planned = deal::planned(self, model, program, &checked, &ports, *cores)?;
            planned.allow_contents(&function, &entries)?;
            let case = Case {
                program,
                entry: function.entry,
                ports: ports.clone(),
                config: Config {
                    hash_seed: seed::secret(),
                    sketch_seed: self.seed,
                    time: 0,
                    initial: function.initial.clone(),
                    entries: entries.clone(),
                    homes: planned.homes(),
                },
                deal: &planned.deal(),
                apart: planned.apart(),
                schedule: match self.schedule {
                    Order::Ingress => Schedule::Ingress,
                    Order::Seeded => Schedule::Seeded(self.seed),
                    Order::Threads => Schedule::Threads,
                },
                names: &Written(&function.exposed),
            };
            let mut bar = Bar::new();
            let mut builder = Builder { of: self };
            let found = verify(&case, trace.as_mut(), &mut builder, &mut |read, share| {
                bar.show(Progress { read, share });
            });
            bar.end();
            let mut findings = found.map_err(failure)?;
            findings.notes.extend(planned.notes(&findings));
            let strategy = planned.strategy();
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
        let equal = runs.iter().all(|r| r.findings.equal);
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
            });
        }
        Ok(if equal { DONE } else { NO })
    }

    fn make(&self) -> Make {
        Make {
            set: self.set.clone(),
            capacity: self.capacity.clone(),
            program: self.program.clone(),
            ..Make::default()
        }
    }
}

/// Builds the function with other capacities.
struct Builder<'a> {
    of: &'a Verify,
}

impl Build for Builder<'_> {
    fn module(&mut self, wanted: &Wanted<'_>) -> Result<Arc<Module>, String> {
        let make = Make {
            placement: wanted.placement.cloned().map(Arc::new),
            yields: wanted.yields,
            ..self.of.make().with_capacities(wanted.capacities)
        };
        let function = Function::load(&self.of.nf, &make).map_err(|f| f.what)?;
        Ok(function.module)
    }
}

/// Entries as `millrace map` writes them.
struct Written<'a>(&'a Exposed);

impl Names for Written<'_> {
    fn key(&self, object: usize, key: &[u8]) -> String {
        self.0.words(object, key, &[]).0
    }

    fn value(&self, object: usize, value: &[u8]) -> String {
        self.0.words(object, &[], value).1
    }
}

fn failure(error: VerifyError) -> Failure {
    match error {
        VerifyError::Trace(e) => Failure::wrong(&e).help(&e.help),
        VerifyError::Empty => Failure::wrong(error).help("give a capture that has packets"),
        VerifyError::State(_) => {
            Failure::wrong(error).help("declare a smaller capacity, or free memory on this machine")
        }
        VerifyError::Build(_) => Failure::wrong(error).help("`millrace check` says more"),
    }
}
