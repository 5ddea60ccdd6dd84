//! `millrace profile`: what holds a function back on several cores, by its source lines, and what would help.

mod recipes;
mod runs;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use millrace::{Arrangement, Asked, Function, Make, Ports, place};
use millrace_dataplane::clock::Rate;
use millrace_place::Strategy;
use millrace_profile::{Measured, Sources, Spread, page, report, text, times};
use millrace_steer::Owners;
use millrace_traffic::split::Split;
use millrace_verify::Trace;

use self::recipes::Changed;
use self::runs::Runs;
use crate::failure::{DONE, Failure};
use crate::strategy::Wished;
use crate::{function, screen};

static STOP: AtomicBool = AtomicBool::new(false);

/// Show what holds a function back on several cores: conflicts by source line, with their causes and what would help, and how
/// packets are shared out among workers.
#[derive(Args)]
#[command(after_help = "\
The first line names the costliest cause, its line, and the recipe that is expected to help most. With --try each recipe that \
is an option or a strategy is measured, in turns with the function as it is. docs/profile.md says what is shown.

Exit status: 0 done, 2 wrong use, or it cannot run on so many cores.")]
pub struct Profile {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name of a folder in ./nfs,
    /// $MILLRACE_NFS or share/millrace/nfs
    nf: String,

    /// Captures, one for each port, in order; or one, with --split. With mem:FILE they can be looped (--loops)
    #[arg(
        long = "in",
        value_name = "FILE",
        value_delimiter = ',',
        required = true
    )]
    inputs: Vec<String>,

    /// Let one capture enter at two ports: packets sent from these prefixes enter at this port, as in lan=10.0.0.0/8
    #[arg(long, value_name = "PORT=CIDR[,CIDR]")]
    split: Option<Split>,

    /// Workers
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=1024))]
    cores: u16,

    /// How it runs: as its plan says, or what is named
    #[arg(long, value_name = "STRATEGY", default_value = "best")]
    strategy: Wished,

    /// Rounds over mem: captures (as many as take 25 ms)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    loops: Option<u64>,

    /// Measure each recipe that is an option or a strategy
    #[arg(long = "try")]
    tries: bool,

    /// With --try: turns of each; of so many the least and the greatest are told
    #[arg(long, value_name = "N", default_value_t = 21, requires = "tries", value_parser = clap::value_parser!(u8).range(3..=99))]
    turns: u8,

    /// Set a parameter, or an option of an object's declaration, as in flows.capacity=1000000
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Give a state object room for this many entries
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// Which program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Write a page with the source and what conflicts take beside its lines
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Strategies that are tried in place of another, beside what the plan takes for the best.
const OTHERS: [Strategy; 3] = [Strategy::Transact, Strategy::Lock, Strategy::Replicate];

impl Profile {
    /// Profiles it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let make = function::make(&self.set, &self.capacity, self.program.as_ref())?;
        let ports = Ports::captures(&self.inputs, self.split.as_ref());
        let arranged = self.arranged(&self.nf, &make, self.strategy.0)?;
        let strategy = strategy_of(&arranged, self.strategy.0);
        let counted = Make {
            profile: true,
            ..arranged.divided(&make)
        };
        let counting = function::load(&self.nf, &counted)?;
        let Some(program) = &counting.program else {
            return Err(
                Failure::wrong(format!("{}: a module alone has no lines", self.nf))
                    .help("give its source or its object"),
            );
        };
        let base = function::load(&self.nf, &arranged.divided(&make))?;
        let rate = Rate::start();
        let runs = Runs::new(&ports, self.cores.into(), self.loops, &base)?;
        let (account, places, counters) = runs.looked(&counting)?;
        let lines: Vec<&str> = (account.conflicts.iter())
            .map(|(_, c)| c.mine.line.as_str())
            .collect();
        let own = format!("{}.c", program.name);
        let sources = Sources::read(&counting.folder, &own, lines.into_iter());
        let spread = self.spread(&counting, &arranged, &ports)?;
        let mut others = OTHERS.to_vec();
        if self.strategy != Wished::default() {
            let best = self.arranged(&self.nf, &make, None);
            others.extend(best.ok().map(|best| strategy_of(&best, None)));
        }
        others.retain(|s| !matches!(s, Strategy::Mixed | Strategy::Alone));
        others.dedup();
        let (solo, now) = runs.beside(&base)?;
        let plan = arranged.plan.as_ref();
        let infeasible: Vec<String> = plan
            .into_iter()
            .flat_map(|p| &p.objects)
            .filter(|o| o.infeasible)
            .map(|o| o.name.clone())
            .collect();
        let mut report = report(&Measured {
            name: &program.name,
            program,
            sources: &sources,
            strategy,
            cores: usize::from(self.cores),
            account: &account,
            ns_per_tick: rate.ns_per_tick(),
            spread: &spread,
            others: &others,
            solo,
            now: Some(now),
            infeasible: &infeasible,
            times: &times(&counting.module, program, &places),
            counters: &counters,
        });
        if self.loops.is_none() && runs.rounds > 1 {
            let rounds = runs.rounds;
            report.notes.push(format!(
                "each run: {rounds} rounds over the captures (--loops)"
            ));
        }
        let changed = Changed {
            profile: self,
            make: &make,
            base: &base,
            folder: &counting.folder,
        };
        let mut made = Vec::new();
        if solo.is_some() {
            made = changed.foresee(&runs, &mut report);
        }
        if self.tries {
            changed.attempt(&runs, &mut report, made)?;
        }
        if let Some(path) = &self.html {
            std::fs::write(path, page(&report, &sources)).map_err(|e| {
                Failure::wrong(format!("{}: cannot be written: {e}", path.display()))
                    .help("choose another --html, or make room")
            })?;
        }
        match self.json {
            true => screen::document(&report),
            false => screen::out(text(&report).trim_end()),
        }
        Ok(DONE)
    }

    fn arranged(
        &self,
        nf: &str,
        make: &Make,
        strategy: Option<Strategy>,
    ) -> Result<Arrangement, Failure> {
        let asked = Asked {
            cores: usize::from(self.cores),
            strategy,
            ..Asked::default()
        };
        function::arrange(nf, make, &[], &asked, (&[strategy], None))
    }

    /// How the packets come to workers.
    fn spread(
        &self,
        function: &Function,
        arranged: &Arrangement,
        ports: &Ports,
    ) -> Result<Spread, Failure> {
        let names = ports.names(&function.ports)?;
        let owners = place::owners(&arranged.placement, names.len(), arranged.workers);
        let owners: Vec<Owners> = owners.unwrap_or_default();
        let words: Vec<String> = (self.inputs.iter())
            .map(|w| w.strip_prefix("mem:").unwrap_or(w).to_owned())
            .collect();
        let files = Ports::captures(&words, self.split.as_ref());
        let mut trace = files.trace(&names, &STOP)?;
        let wrong = |e: millrace_verify::TraceError| Failure::wrong(&e.what).help(e.help);
        let mut pass = trace.open().map_err(wrong)?;
        let mut spread = Spread::default();
        while let Some((port, _, _, frame)) = pass.next().map_err(wrong)? {
            let owners = owners.get(port as usize);
            let place = owners.map(|o| (o.index(frame), o.owner(frame)));
            spread.add(port, place, frame);
        }
        Ok(spread)
    }
}

/// How it runs.
fn strategy_of(arranged: &Arrangement, asked: Option<Strategy>) -> Strategy {
    let planned = arranged.plan.as_ref().map(|p| p.strategy);
    asked.or(planned).unwrap_or(Strategy::Mixed)
}
