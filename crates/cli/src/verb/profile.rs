//! `millrace profile`: what holds a function back on several cores, by its source lines, and what would help.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use millrace::{Arrangement, Asked, Function, Job, Make, Ports, place};
use millrace_dataplane::account::Account;
use millrace_dataplane::clock::Rate;
use millrace_dataplane::mailbox::Mailbox;
use millrace_dataplane::probe::Probe;
use millrace_place::{Held, Strategy};
use millrace_profile::{
    Change, Measured, Prefetch, Recipe, Report, Sources, Spread, Tried, page, report, text, times,
};
use millrace_steer::Owners;
use millrace_traffic::split::Split;
use millrace_verify::Trace;

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

    /// Rounds over mem: captures
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    loops: u64,

    /// Measure each recipe that is an option or a strategy
    #[arg(long = "try")]
    tries: bool,

    /// With --try: turns of each
    #[arg(long, value_name = "N", default_value_t = 5, requires = "tries", value_parser = clap::value_parser!(u8).range(3..=99))]
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
    json: bool,
}

/// Turns in which it is measured what a packet costs on one core, and what as it runs.
const BESIDE: usize = 5;
/// Recipes that are measured before they are told.
const FORESEEN: usize = 4;

/// Strategies that are tried in place of another, beside what the plan takes for the best.
const OTHERS: [Strategy; 3] = [Strategy::Transact, Strategy::Lock, Strategy::Replicate];

impl Profile {
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

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
        let rate = Rate::start();
        let (account, places) = self.looked(&counting, &ports)?;
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
        let base = function::load(&self.nf, &arranged.divided(&make))?;
        let (solo, now) = self.beside(&base, &ports)?;
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
        });
        let mut made = Vec::new();
        if solo.is_some() {
            let told = (counting.folder.as_path(), &mut report);
            made = self.foresee((&make, &base), &ports, told);
        }
        if self.tries {
            let told = (counting.folder.as_path(), &mut report);
            self.attempt(&make, strategy, &ports, (told, made))?;
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

    /// The file that its source has.
    fn name(&self) -> String {
        let word = Path::new(&self.nf);
        let name = word
            .file_name()
            .unwrap_or(word.as_os_str())
            .to_string_lossy();
        match name.ends_with(".c") {
            true => name.into_owned(),
            false => format!("{name}.c"),
        }
    }

    /// The same, and where the workers were.
    fn looked(&self, function: &Function, ports: &Ports) -> Result<(Account, Vec<usize>), Failure> {
        let workers = usize::from(self.cores).min(function.workers.max(1));
        let mailboxes: Vec<Arc<Mailbox>> = (0..workers).map(|_| Arc::default()).collect();
        let probes: Arc<Mutex<Vec<Probe>>> = Arc::default();
        for mailbox in &mailboxes {
            let probes = probes.clone();
            mailbox.post(Box::new(move |_| {
                let mut probes = probes.lock().unwrap_or_else(PoisonError::into_inner);
                probes.extend(Probe::begin());
            }));
        }
        let account = self.run_with(function, ports, (true, workers), mailboxes)?;
        let mut probes = probes.lock().unwrap_or_else(PoisonError::into_inner);
        let places = probes.drain(..).flat_map(Probe::end).collect();
        Ok((account, places))
    }

    /// Runs it over the packets once.
    fn run(&self, function: &Function, ports: &Ports, prefetch: bool) -> Result<Account, Failure> {
        self.run_with(function, ports, (prefetch, self.cores.into()), Vec::new())
    }

    fn run_with(
        &self,
        function: &Function,
        ports: &Ports,
        (prefetch, workers): (bool, usize),
        mailboxes: Vec<Arc<Mailbox>>,
    ) -> Result<Account, Failure> {
        let link = function.link(0, Vec::new(), prefetch)?;
        let mut job = Job {
            chain: vec![link],
            loops: Some(self.loops),
            mailboxes,
            ..Job::of(function, ports)?
        };
        job.workers = workers.min(function.workers.max(1));
        let opened = job.open(ports, &STOP)?;
        opened.run(&STOP, &mut |_| {})
    }

    /// ns a packet on one worker, of state that any worker may have, and on all. On one the least of several turns, since other work on
    /// the machine only adds to it; on all their median, since how long they wait for each other is no addition.
    fn beside(&self, base: &Function, ports: &Ports) -> Result<(Option<f64>, f64), Failure> {
        let workers = usize::from(self.cores);
        let places = base.placement.iter().flat_map(|p| &p.objects);
        let owned = |held: &Held| matches!(held, Held::Divided | Held::Alone);
        let any = !places.map(|place| &place.held).any(owned);
        let solo = any.then(|| self.least(base, ports, 1)).transpose()?;
        let mut all = self.turns(base, ports, workers)?;
        Ok((solo, quartiles(&mut all).1))
    }

    fn least(&self, function: &Function, ports: &Ports, workers: usize) -> Result<f64, Failure> {
        let all = self.turns(function, ports, workers)?.into_iter();
        Ok(all.fold(f64::INFINITY, f64::min))
    }

    /// ns a packet, of several turns.
    fn turns(
        &self,
        function: &Function,
        ports: &Ports,
        workers: usize,
    ) -> Result<Vec<f64>, Failure> {
        let turn = |_| {
            let account = self.run_with(function, ports, (true, workers), Vec::new())?;
            Ok(account.function.ns_per_packet)
        };
        (0..BESIDE).map(turn).collect()
    }

    /// What a packet takes with the first recipes: conflicts that are counted do not tell what a recipe costs itself,
    /// nor what workers then wait for. Gives the functions that were made for it.
    fn foresee(
        &self,
        (make, base): (&Make, &Function),
        ports: &Ports,
        (folder, report): (&Path, &mut Report),
    ) -> Vec<(Change, Function)> {
        let changes = |r: &Recipe| r.change != Change::Source;
        let all = report.recipes.iter().enumerate();
        let first: Vec<usize> = (all.filter(|(_, r)| changes(r)).map(|(at, _)| at))
            .take(FORESEEN)
            .collect();
        let mut made = Vec::new();
        for at in first {
            let Some(recipe) = report.recipes.get(at) else {
                continue;
            };
            // What cannot be made is said where it is tried.
            let Ok(changed) = self.changed(make, (folder, recipe)) else {
                continue;
            };
            let gains = self.gains(base, &changed, ports, BESIDE);
            if let (Ok(mut gains), Some(recipe)) = (gains, report.recipes.get_mut(at)) {
                recipe.gain = quartiles(&mut gains).1;
                made.push((recipe.change.clone(), changed));
            }
        }
        report.sort();
        made
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

    /// How much less a packet takes, in turns.
    fn gains(
        &self,
        base: &Function,
        changed: &Function,
        ports: &Ports,
        turns: usize,
    ) -> Result<Vec<f64>, Failure> {
        let turn = |_| {
            let was = self.run(base, ports, true)?;
            Ok(ratio(&self.run(changed, ports, true)?, &was))
        };
        (0..turns).map(turn).collect()
    }

    /// Measures recipes, in turns with what there is.
    fn attempt(
        &self,
        make: &Make,
        strategy: Strategy,
        ports: &Ports,
        ((folder, report), mut made): ((&Path, &mut Report), Vec<(Change, Function)>),
    ) -> Result<(), Failure> {
        let base = self.arranged(&self.nf, make, Some(strategy));
        // What is mixed has no name to ask for.
        let base = base.or_else(|_| self.arranged(&self.nf, make, self.strategy.0))?;
        let base = function::load(&self.nf, &base.divided(make))?;
        let turns = usize::from(self.turns);
        let mut gains = Vec::new();
        for _ in 0..turns {
            let with = self.run(&base, ports, true)?;
            let without = self.run(&base, ports, false)?;
            gains.push(ratio(&with, &without));
        }
        report.prefetch = Some(Prefetch {
            gain: quartiles(&mut gains).1,
            turns,
        });
        for recipe in &mut report.recipes {
            if recipe.change == Change::Source {
                continue;
            }
            let known = made.iter().position(|(change, _)| *change == recipe.change);
            let tried = match known {
                Some(known) => Ok(made.swap_remove(known).1),
                None => self.changed(make, (folder, recipe)),
            };
            recipe.tried = Some(match tried {
                Err(failure) => Tried {
                    gain: None,
                    low: None,
                    high: None,
                    turns: 0,
                    refused: Some(failure.what),
                },
                Ok(changed) => {
                    let mut gains = self.gains(&base, &changed, ports, turns)?;
                    let (low, median, high) = quartiles(&mut gains);
                    Tried {
                        gain: Some(median),
                        low: Some(low),
                        high: Some(high),
                        turns,
                        refused: None,
                    }
                }
            });
        }
        Ok(())
    }

    /// The function as a recipe has it.
    fn changed(
        &self,
        make: &Make,
        (folder, recipe): (&Path, &Recipe),
    ) -> Result<Function, Failure> {
        let mut make = make.clone();
        // With another option the plan may find another strategy; that is what many options are for.
        let mut wanted = self.strategy.0;
        match &recipe.change {
            Change::Option {
                object,
                option,
                value,
            } => make
                .settings
                .push((format!("{object}.{option}"), value.clone())),
            Change::Strategy(other) => wanted = Some(*other),
            Change::Edit { from, to } => {
                let copy = tempfile::tempdir().map_err(|e| {
                    Failure::wrong(format!("no folder for an edited source: {e}"))
                        .help("make room in the folder of temporary files")
                })?;
                let nf = edited((folder, copy.path()), &self.name(), recipe, (from, to))?;
                let arranged = self.arranged(&nf, &make, wanted)?;
                return function::load(&nf, &arranged.divided(&make));
            }
            Change::Source => {}
        }
        let arranged = self.arranged(&self.nf, &make, wanted)?;
        function::load(&self.nf, &arranged.divided(&make))
    }
}

/// A copy of a function's folder in which one line has other words; gives its source.
fn edited(
    (folder, copy): (&Path, &Path),
    own: &str,
    recipe: &Recipe,
    (from, to): (&str, &str),
) -> Result<String, Failure> {
    let failed = |what: String| {
        Failure::wrong(what).help("change the line by hand, and profile the function again")
    };
    let unread = |e: std::io::Error| failed(format!("{}: {e}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let source = entry.path();
        let is_source = source.extension().is_some_and(|e| e == "c" || e == "h");
        if is_source && source.is_file() {
            std::fs::copy(&source, copy.join(entry.file_name())).map_err(unread)?;
        }
    }
    let path = copy.join(&recipe.file);
    let text = std::fs::read_to_string(&path).map_err(unread)?;
    let at = (recipe.line as usize).wrapping_sub(1);
    let has = text.lines().nth(at).is_some_and(|line| line.contains(from));
    if !has {
        return Err(failed(format!(
            "{}:{}: there is no `{from}` in the line",
            recipe.file, recipe.line
        )));
    }
    let lines = text.lines().enumerate();
    let lines: Vec<String> = lines
        .map(|(index, line)| match index == at {
            true => line.replacen(from, to, 1),
            false => line.to_owned(),
        })
        .collect();
    std::fs::write(&path, lines.join("\n") + "\n").map_err(unread)?;
    Ok(copy.join(own).display().to_string())
}

/// How it runs.
fn strategy_of(arranged: &Arrangement, asked: Option<Strategy>) -> Strategy {
    let planned = arranged.plan.as_ref().map(|p| p.strategy);
    asked.or(planned).unwrap_or(Strategy::Mixed)
}

/// Throughput of the first over that of the second, by the time inside the function, waiting included.
fn ratio(one: &Account, other: &Account) -> f64 {
    let ns = |a: &Account| a.function.ns_per_packet.max(0.01);
    ns(other) / ns(one)
}

/// The first quartile, the median, the third.
fn quartiles(all: &mut [f64]) -> (f64, f64, f64) {
    all.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let index = ((all.len().saturating_sub(1)) as f64 * part).round() as usize;
        all.get(index).copied().unwrap_or(1.0)
    };
    (at(0.25), at(0.5), at(0.75))
}
