//! `millrace bench`: how fast functions are, measured as the field measures.

mod figures;
mod memory;
mod page;
mod plan;
mod plot;
mod rig;
mod row;
mod search;
mod text;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use millrace_dataplane::port::vnic::{Rate, Settings, dispatch_cost};
use millrace_dataplane::runner::BURST;
use millrace_dataplane::signal;

use self::figures::{Document, Latency, Run, Skipped, median};
use self::plan::{Config, Machine, Subject, Wish};
use self::rig::{Place, Rig};
use self::row::Measured;
use self::search::search;
use crate::failure::{DONE, Failure};
use crate::strategy::Wished;
use crate::{function, screen};

/// The function that only forwards.
const LIMIT: &str = "nop";
/// Before anything is counted: code, tables and predictors get warm.
const WARM: Duration = Duration::from_millis(100);

/// Measure the highest rate without loss, and latency, on a software NIC
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Bench {
    /// The functions, each as in `millrace run`; a chain file (.toml) is one of them, on one core
    #[arg(required = true)]
    nf: Vec<String>,

    /// The capture that is received over and over, or a whole port, vnic:FILE?option=value&…
    #[arg(long = "in", value_name = "FILE")]
    input: String,

    /// On how many cores, one after the other; on several as the plan says (docs/parallel.md)
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1")]
    cores: Vec<usize>,

    /// How state lives on several cores
    #[arg(long, value_name = "STRATEGY", value_enum, default_value_t)]
    strategy: Wished,

    /// Without a software NIC: each worker has its packets in its own memory and takes a processor, none is left
    /// for a NIC. The figure is the trace's second half over the time of the worker that is done last, copying
    /// into buffers included; there is no loss and no latency. On one core it is the time inside the function, too:
    /// of a chain with what is between its functions, and without; times are then those that a burst takes, all its packets
    #[arg(long, conflicts_with_all = ["rate", "dispatch", "nic_threads"])]
    memory: bool,

    /// With --memory, on one core: how often the capture comes, its times going on. The second half of all is measured: flows
    /// that a short capture opens in its first round are known
    #[arg(long, value_name = "N", default_value_t = 1, requires = "memory", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,

    /// Measure loss and latency at these rates (as in 2M or 500k) instead of looking for the highest
    #[arg(long, value_name = "RATE,…", value_delimiter = ',')]
    rate: Vec<String>,

    /// The loss at which a rate still passes, per cent of the packets offered
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1, value_parser = percent)]
    loss: f64,

    /// Measure latency at these shares of the highest rate
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',', default_value = "0.5,0.9", value_parser = share)]
    at: Vec<f64>,

    /// Charge this many nanoseconds a packet on top of the software NIC's own dispatch cost: a
    /// simulation of a slower one, and named so with every figure
    #[arg(long, value_name = "NS,…", value_delimiter = ',', default_value = "0")]
    dispatch: Vec<f64>,

    /// Let the capture enter at two ports: packets sent from this prefix at this port, lan=10.0.0.0/8
    #[arg(long, value_name = "PORT=CIDR")]
    split: Option<String>,

    /// The model of the NIC: how it hashes, and the size of its table
    #[arg(long, value_name = "MODEL")]
    nic: Option<String>,

    /// Set a parameter, in every function that has it
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Give a state object room for this many entries
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// Packets a burst
    #[arg(long, value_name = "N", default_value_t = BURST, value_parser = super::run::burst)]
    burst: usize,

    /// How often everything is measured, in turns; medians are reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeat: u32,

    /// Seconds a trial
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = super::run::seconds)]
    trial: Duration,

    /// The processors to use, workers first, then threads of the NIC; without it the first and the last
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    cpus: Vec<usize>,

    /// Threads of the software NIC; without it one a worker, as far as there are processors
    #[arg(long, value_name = "N")]
    nic_threads: Option<usize>,

    /// Do not measure the limit, the function `nop` on the same port
    #[arg(long)]
    no_limit: bool,

    /// Write the figures as a table
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write a page with plots; it needs nothing but a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the figures as one JSON document
    #[arg(long)]
    pub json: bool,
}

const AFTER: &str = "\
Workers and the threads that play the NIC each take a processor. A number of cores for which there are \
too few is skipped, with the reason.

Exit status: 0 measured, 1 a function is unsafe, 2 wrong use, or nothing could be measured.";

fn percent(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|p| (0.0..100.0).contains(p));
    share.ok_or_else(|| "per cent, from 0 to below 100".into())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|s| *s > 0.0 && *s <= 1.0);
    share.ok_or_else(|| "a share above 0, at most 1".into())
}

/// What one repetition of a configuration showed.
struct Once {
    mpps: f64,
    limited: bool,
    taken: f64,
    function_ns: f64,
    functions_ns: f64,
    latency: Vec<Latency>,
    load: Vec<f64>,
    writes: Option<f64>,
}

impl Bench {
    /// Measures, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        signal::install();
        let rates = self.rates()?;
        let machine = Machine::new(&self.cpus, self.nic_threads)?;
        let functions = self.functions()?;
        // A wrong option is named before anything runs.
        let base = self.settings(1, 1, 0.0, &[])?;
        if base.dispatch > 0.0 || base.rate != Rate::Taken {
            return Err(Failure::wrong(
                "the port's options `dispatch` and `rate` are the benchmark's own",
            )
            .help("give --dispatch, or --rate"));
        }
        let (configs, skipped) = self.configs(&machine, &functions);
        if configs.iter().all(|c| c.limit) {
            let why = skipped
                .first()
                .map_or(String::new(), |s: &Skipped| s.why.clone());
            let help =
                "each worker takes a processor, and each thread of the NIC: use fewer --cores";
            return Err(Failure::wrong(format!("nothing can be measured: {why}")).help(help));
        }
        let busy = plan::busy(&machine.cpus);
        let dispatch_ns = if self.memory {
            0.0
        } else {
            self.dispatch_cost(&machine)?
        };
        if self.rounds > 1 && self.cores.iter().any(|c| *c > 1) {
            return Err(
                Failure::wrong("--rounds: on several cores a capture comes once")
                    .help("make a longer capture, or measure on one core"),
            );
        }
        let names = functions.last().map_or(&[][..], |f| &f.function.row.ports);
        let frames = self
            .memory
            .then(|| memory::frames(&base, names))
            .transpose()?;
        let mut seen: Vec<Vec<Once>> = configs.iter().map(|_| Vec::new()).collect();
        for turn in 0..self.repeat {
            for (config, seen) in configs.iter().zip(&mut seen) {
                if signal::flag().load(std::sync::atomic::Ordering::Relaxed) {
                    return Err(Failure::wrong("stopped by a signal; nothing is reported")
                        .help("let it end, or use fewer --repeat"));
                }
                screen::err(&format!(
                    "turn {} of {}: {} on {}{}",
                    turn + 1,
                    self.repeat,
                    config.function.name,
                    config.cores,
                    if config.charge > 0.0 {
                        format!(", {} ns charged", config.charge)
                    } else {
                        String::new()
                    }
                ));
                seen.push(match &frames {
                    Some(frames) => memory::once(config, &machine, frames, self.rounds)?,
                    None => self.once(config, &machine, &rates)?,
                });
            }
        }
        let mut facts = base.facts();
        facts.retain(|f| !f.starts_with("SIMULATION"));
        if self.memory {
            facts = vec![memory::FACT.to_owned()];
        }
        let document = Document {
            skipped,
            conditions: figures::Conditions {
                processor: plan::processor(),
                processors: machine.cpus,
                busy,
                memory: self.memory,
                system: plan::system(),
                version: env!("CARGO_PKG_VERSION"),
                trace: base.file,
                nic: facts,
                dispatch_ns,
                burst: self.burst,
                loss: self.loss / 100.0,
                trial_seconds: self.trial.as_secs_f64(),
                repetitions: self.repeat as usize,
            },
            ..summary(&configs, &seen, if self.memory { "memory" } else { "vnic" })
        };
        self.tell(&document)?;
        Ok(DONE)
    }

    fn tell(&self, document: &Document) -> Result<(), Failure> {
        let write = |path: &Path, text: &str| {
            std::fs::write(path, text).map_err(|e| {
                Failure::wrong(format!("{}: cannot be written: {e}", path.display()))
                    .help("choose another file")
            })
        };
        if let Some(path) = &self.csv {
            write(path, &document.csv())?;
        }
        if let Some(path) = &self.html {
            write(path, &page::page(document))?;
        }
        screen::report(self.json, &text::text(document));
        if self.json {
            screen::document(document);
        }
        Ok(())
    }

    /// Rates of `--rate`, packets a second.
    fn rates(&self) -> Result<Vec<f64>, Failure> {
        let rate = |text: &String| match Rate::parse(text) {
            Some(Rate::PerSecond(rate)) => Ok(rate),
            _ => Err(Failure::wrong(format!("--rate {text}: not a rate"))
                .help("write packets a second, as in 1.5M or 500k")),
        };
        self.rate.iter().map(rate).collect()
    }

    fn functions(&self) -> Result<Vec<Subject>, Failure> {
        let make = |word: &str, settings: bool| -> Result<Subject, Failure> {
            let make = match settings {
                true => function::make(&self.set, &self.capacity, None)?,
                false => function::make(&[], &[], None)?,
            };
            let function = Rc::new(Measured::read(word, &make)?);
            let word = word.to_owned();
            Ok(Subject {
                word,
                make,
                function,
            })
        };
        let mut functions = Vec::new();
        if !self.no_limit && !self.nf.iter().any(|nf| nf == LIMIT) {
            let help = "name the folder with $MILLRACE_NFS, or give --no-limit";
            functions.push(make(LIMIT, false).map_err(|e| e.help(help))?);
        }
        for word in &self.nf {
            functions.push(make(word, true)?);
        }
        Ok(functions)
    }

    /// The device of a configuration.
    fn settings(
        &self,
        queues: usize,
        threads: usize,
        charge: f64,
        cores: &[usize],
    ) -> Result<Settings, Failure> {
        let rest = self.input.strip_prefix("vnic:").unwrap_or(&self.input);
        let mut word = rest.to_owned();
        let mut option = |text: String| {
            word.push(if word.contains('?') { '&' } else { '?' });
            word.push_str(&text);
        };
        option(format!("threads={threads}"));
        if charge > 0.0 {
            option(format!("dispatch={charge}"));
        }
        if !cores.is_empty() {
            let cores: Vec<_> = cores.iter().map(usize::to_string).collect();
            option(format!("cores={}", cores.join("+")));
        }
        for (key, value) in [("split", &self.split), ("nic", &self.nic)] {
            if let Some(value) = value {
                option(format!("{key}={value}"));
            }
        }
        Settings::parse(&word, queues as u32).map_err(Failure::from)
    }

    fn dispatch_cost(&self, machine: &Machine) -> Result<f64, Failure> {
        let Some((_, nic)) = machine.place(1) else {
            return Ok(0.0);
        };
        let settings = self.settings(1, 1, 0.0, nic.get(..1).unwrap_or(&[]))?;
        dispatch_cost(&settings).map_err(Failure::from)
    }

    /// What is measured, and what is not and why.
    fn configs(&self, machine: &Machine, functions: &[Subject]) -> (Vec<Config>, Vec<Skipped>) {
        let (mut configs, mut skipped) = (Vec::new(), Vec::new());
        let wish = Wish {
            strategy: self.strategy,
            nic: self.nic.as_deref().unwrap_or("generic"),
            memory: self.memory,
        };
        for charge in &self.dispatch {
            for cores in &self.cores {
                for subject in functions {
                    let limit = subject.function.name == LIMIT;
                    match plan::possible(subject, *cores, machine, &wish) {
                        Ok(function) => configs.push(Config {
                            function,
                            cores: *cores,
                            charge: *charge,
                            limit,
                        }),
                        Err(why) => skipped.push(Skipped {
                            nf: subject.function.name.clone(),
                            cores: *cores,
                            why,
                        }),
                    }
                }
            }
        }
        // A benchmark of `nop` alone is one of a function, not of its limit.
        if self.nf.iter().all(|nf| nf == LIMIT) {
            configs.iter_mut().for_each(|c| c.limit = false);
        }
        (configs, skipped)
    }

    /// One repetition of a configuration.
    fn once(&self, config: &Config, machine: &Machine, rates: &[f64]) -> Result<Once, Failure> {
        let (workers, nic) = machine.place(config.cores).unwrap_or_default();
        let settings = self.settings(config.cores, nic.len(), config.charge, &nic)?;
        let place = Place {
            workers: &workers,
            burst: self.burst,
            window: self.trial,
        };
        let rig = Rig::start(&config.function, &settings, &place)?;
        rig.window(Rate::Taken, WARM);
        let taken = rig.window(Rate::Taken, self.trial).offered();
        if rig.ended() {
            let account = rig.finish()?;
            let why = account
                .errors
                .first()
                .map_or("it ended", |e| e.error.as_str());
            return Err(Failure::wrong(format!("{}: {why}", config.function.name)));
        }
        let loss = self.loss / 100.0;
        let (rate, limited, at) = if rates.is_empty() {
            let found = search(taken, loss, &mut |rate| rig.trial(rate, loss));
            let at = self.at.iter().map(|f| (*f, f * found.rate)).collect();
            (found.rate, found.limited, at)
        } else {
            let highest = rates.iter().copied().fold(0.0, f64::max);
            let at: Vec<_> = rates.iter().map(|rate| (rate / highest, *rate)).collect();
            (highest, false, at)
        };
        let (mut latency, mut load) = (Vec::new(), Vec::new());
        for (fraction, rate) in at.into_iter().filter(|(_, rate)| *rate >= 1.0) {
            let window = rig.window(Rate::PerSecond(rate), self.trial);
            let tick = rig.ns_per_tick();
            let time = |share| window.counts.times.quantile(share).map(|t| t * tick);
            latency.push(Latency {
                fraction,
                mpps: window.offered() / 1e6,
                p50_ns: time(0.5),
                p99_ns: time(0.99),
                p999_ns: time(0.999),
                lost: window.lost(),
            });
            let all = window.counts.delivered.iter().sum::<u64>().max(1) as f64;
            load = window
                .counts
                .delivered
                .iter()
                .map(|d| *d as f64 / all)
                .collect();
        }
        let account = rig.finish()?;
        Ok(Once {
            mpps: rate / 1e6,
            limited,
            taken: taken / 1e6,
            function_ns: account.function.ns_per_packet,
            functions_ns: account.function.ns_per_packet,
            latency,
            load,
            writes: None,
        })
    }
}

/// Time inside a function as a share of the first function's on as many cores, repetition by repetition: with what is between
/// the functions of a chain, and of the functions alone.
fn of_first(
    configs: &[Config],
    seen: &[Vec<Once>],
    config: &Config,
    turns: &[Once],
) -> Vec<figures::Ratio> {
    let same =
        |c: &Config| c.cores == config.cores && c.charge.to_bits() == config.charge.to_bits();
    let mut others = configs
        .iter()
        .zip(seen)
        .filter(|(c, _)| !c.limit && same(c));
    let Some((first, base)) = others.next() else {
        return Vec::new();
    };
    if std::ptr::eq(first, config) || config.limit {
        return Vec::new();
    }
    let of = |what: &dyn Fn(&Once) -> f64| {
        let pairs = turns.iter().zip(base).filter(|(_, b)| what(b) > 0.0);
        let ratios: Vec<f64> = pairs.map(|(t, b)| what(t) / what(b)).collect();
        let (median, spread) = median(&ratios);
        figures::Ratio { median, spread }
    };
    let both = [of(&|t| t.function_ns), of(&|t| t.functions_ns)];
    match both[0].median > 0.0 {
        true => both.to_vec(),
        false => Vec::new(),
    }
}

/// Medians over the repetitions.
fn summary(configs: &[Config], seen: &[Vec<Once>], port: &'static str) -> Document {
    let (mut runs, mut limit) = (Vec::new(), Vec::new());
    for (config, turns) in configs.iter().zip(seen) {
        let of = |what: &dyn Fn(&Once) -> f64| median(&turns.iter().map(what).collect::<Vec<_>>());
        let (mpps, spread) = of(&|t| t.mpps);
        let same = |(c, _): &(&Config, &Vec<Once>)| {
            c.limit && c.cores == config.cores && c.charge.to_bits() == config.charge.to_bits()
        };
        let limits = configs.iter().zip(seen).find(same);
        let of_limit = limits.map(|(_, limits)| {
            let ratios = turns.iter().zip(limits).map(|(t, l)| t.mpps / l.mpps);
            median(&ratios.collect::<Vec<_>>()).0
        });
        let count = turns.first().map_or(0, |t| t.latency.len());
        let latency: Vec<Latency> = (0..count)
            .map(|index| {
                let of = |what: &dyn Fn(&Latency) -> f64| {
                    let values = turns.iter().filter_map(|t| t.latency.get(index)).map(what);
                    median(&values.collect::<Vec<_>>()).0
                };
                let time = |what: &dyn Fn(&Latency) -> Option<f64>| {
                    let values = turns.iter().filter_map(|t| what(t.latency.get(index)?));
                    let values: Vec<f64> = values.collect();
                    (!values.is_empty()).then(|| median(&values).0)
                };
                Latency {
                    fraction: of(&|l| l.fraction),
                    mpps: of(&|l| l.mpps),
                    p50_ns: time(&|l| l.p50_ns),
                    p99_ns: time(&|l| l.p99_ns),
                    p999_ns: time(&|l| l.p999_ns),
                    lost: of(&|l| l.lost),
                }
            })
            .collect();
        let top = latency
            .iter()
            .max_by(|a, b| a.fraction.total_cmp(&b.fraction));
        let run = Run {
            nf: config.function.name.clone(),
            strategy: { config.function.placement() }
                .map_or("alone", |placement| placement.strategy().name()),
            port,
            cores: config.cores,
            charged_ns: config.charge,
            mpps,
            spread,
            of_limit: of_limit.filter(|_| !config.limit),
            limited_by_nic: turns.iter().any(|t| t.limited),
            taken_mpps: of(&|t| t.taken).0,
            function_ns: of(&|t| t.function_ns).0,
            functions_ns: of(&|t| t.functions_ns).0,
            of_first: of_first(configs, seen, config, turns),
            p50_ns: top.and_then(|l| l.p50_ns),
            p99_ns: top.and_then(|l| l.p99_ns),
            latency,
            load: turns.first().map_or(Vec::new(), |t| t.load.clone()),
            imbalance: of(&|t| {
                t.load.iter().copied().fold(0.0, f64::max) * t.load.len().max(1) as f64
            })
            .0,
            writes: turns.iter().find_map(|t| t.writes),
        };
        if config.limit { &mut limit } else { &mut runs }.push(run);
    }
    Document {
        runs,
        limit,
        skipped: Vec::new(),
        conditions: figures::Conditions::default(),
    }
}
