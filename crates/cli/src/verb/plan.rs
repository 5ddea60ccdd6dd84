//! `millrace plan`: how a function may run on many cores, and why.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millrace::place::{Divided, Nodes, Purpose};
use millrace::{Make, Ports, cost};
use millrace_model::Limits;
use millrace_place::Strategy;
use millrace_plan::{SOLVER_TIME, Wanted, text};
use millrace_steer::nic;
use millrace_traffic::split::Split;
use serde::Serialize;

use crate::failure::{DONE, Failure};
use crate::{budget, function, screen};

/// Show how a function runs on many cores: what is done with each state object, how packets are steered, and
/// why, in terms of its source.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done, 1 refused, or the function cannot run with the strategy that was asked for, 2 wrong use.")]
pub struct Plan {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs; several are a row, which is linked (docs/chains.md)
    #[arg(required = true, value_name = "NF")]
    nfs: Vec<String>,

    /// Only this program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Give a state object this many entries; `*` stands for all whose author left it to the loader
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// Set a parameter of the function
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// How many cores
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    cores: u32,

    /// The NIC, or `software` where the cores steer themselves
    #[arg(long, value_name = "NAME", default_value = "generic", value_parser = nic::names())]
    nic: String,

    /// How the whole shall run, instead of what is found
    #[arg(long, value_name = "NAME", value_parser = Strategy::WORDS)]
    strategy: Option<String>,

    /// Captures, one for each port, in order, or one with --split: measure on this machine what the strategies
    /// make of them, predict the rate on 1, 2, 4, 8 and 16 cores and take the best (docs/scaling.md). Without a
    /// capture what shards is sharded, and only what does not is locked
    #[arg(long = "in", value_name = "FILE", value_delimiter = ',')]
    inputs: Vec<String>,

    /// Let one capture enter at two ports: packets sent from these prefixes enter at this port,
    /// as in lan=10.0.0.0/8
    #[arg(long, value_name = "PORT=CIDR[,CIDR]", requires = "inputs")]
    split: Option<Split>,

    /// Most time for the model, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = millrace_model::SECONDS)]
    time: u64,

    /// Most time for the solver to say which packets have the same key, where keys are computed, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = SOLVER_TIME.as_secs())]
    solver_time: u64,

    /// Ask Z3, by this command, instead of the solver that is built in
    #[arg(long, value_name = "COMMAND")]
    solver: Option<PathBuf>,

    /// What it means on so many machines of a cluster (docs/cluster.md), of so many cores each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    nodes: Option<u32>,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// An element whose packets go to the slow path.
#[derive(Serialize)]
struct SlowPath<'a> {
    element: &'a str,
    why: &'a str,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slow_path: Vec<SlowPath<'a>>,
    #[serde(flatten)]
    plan: &'a millrace_plan::Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Nodes>,
}

impl Plan {
    /// Prints it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let word = self.nfs.join("+");
        let make = Make {
            budgets: budget::of(&word),
            ..function::make(&self.set, &self.capacity, self.program.as_ref())?
        };
        let found = millrace::find(&word)?;
        let written = found.read(&make)?;
        function::warn(&written.warnings);
        let budget = make.begin();
        let proved = written.check(budget)?;
        let strategy = self.strategy.as_deref().and_then(Strategy::named);
        let limits = Limits {
            time: Purpose::of(strategy, false).within(budget::seconds(self.time, &word)),
            budget: Some(budget),
            solver: self.solver.clone(),
            ..Limits::default()
        };
        let mut model = proved.model(&limits);
        let wanted = Wanted {
            // A machine of a cluster may have one core: its state is divided all the same.
            cores: self.cores.max(1 + u32::from(self.nodes.is_some())),
            nic: self.nic.clone(),
            strategy,
            solver_time: Duration::from_secs(self.solver_time),
            solver: self.solver.clone(),
            history: Some(proved.history()),
            budget: Some(budget),
            ..Wanted::default()
        };
        let mut plan = proved.plan(&mut model, &wanted)?;
        if !self.inputs.is_empty() {
            let ports = Ports::captures(&self.inputs, self.split.as_ref());
            let traced = cost::Traced {
                found: &found,
                make: &make,
                ports: &ports,
                charged_ns: 0.0,
            };
            plan = proved.measured(plan, &mut model, &wanted, &traced, &mut screen::err)?;
        }
        let handed = found.handed();
        let slow_path = { handed.iter() }
            .map(|(element, why)| SlowPath { element, why })
            .collect::<Vec<_>>();
        let nodes = { self.nodes }.map(|count| Nodes::of(&plan, proved.program, count));
        if self.json {
            screen::document(&Document {
                slow_path,
                plan: &plan,
                nodes,
            });
        } else {
            screen::out(text::text(&plan).trim_end());
            if !slow_path.is_empty() {
                screen::out(
                    "\nslow path: packets of these elements go to one interpreter beside all workers",
                );
            }
            for SlowPath { element, why } in slow_path {
                screen::out(&format!("  {element}: {why}"));
            }
            if let Some(nodes) = nodes {
                screen::out(&words(&nodes));
            }
        }
        Ok(DONE)
    }
}

/// A plan on several machines, in words.
fn words(nodes: &Nodes) -> String {
    let mut lines = vec![format!("\non {} machines", nodes.count)];
    match (nodes.divided, nodes.buckets) {
        (Divided::No, _) => {
            let why = nodes.why.as_deref();
            lines.push(format!(
                "  cannot be: {}",
                why.unwrap_or("it runs on one core")
            ));
        }
        (Divided::Anywhere, _) => {
            lines.push("  any machine may have any packet: nothing goes between them".to_owned());
        }
        (Divided::Buckets, of) => {
            let (all, most) = of.unwrap_or_default();
            lines.push(format!("  {all} buckets, at most {most} a machine"));
            lines.push(format!(
                "  {:.0} % of packets come to another machine than their bucket's, and are sent on to it",
                100.0 * nodes.forwarded
            ));
        }
    }
    let rooms = nodes.capacity.iter();
    lines.extend(rooms.map(|room| {
        format!(
            "  room for entries of {}: {} on a machine, {} in all",
            room.object, room.each, room.all
        )
    }));
    let differs = nodes.differs.iter();
    lines.extend(differs.map(|what| format!("  may differ from one machine: {what}")));
    lines.join("\n")
}
