//! `millrace run`: a network function between ports.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millrace_dataplane::account::Account;
use millrace_dataplane::packet::Layout;
use millrace_dataplane::port::{self, InputOptions};
use millrace_dataplane::runner::{BURST, RecordWriter};
use millrace_dataplane::{Config, signal};
use millrace_traffic::split::Split;
use serde::Serialize;

use crate::failure::{DONE, Failure, WRONG};
use crate::function::{Function, Make};
use crate::progress::Bar;
use crate::wiring::{self, Words};
use crate::{account, contents, sanitize, screen, seed};

/// Run a network function between ports and account for every packet.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Run {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, a bundle,
    /// a module (.so), or the name of a folder in ./nfs or $MILLRACE_NFS
    nf: String,

    /// Where packets come from: one port each, in order, merged by time stamp
    #[arg(
        long = "in",
        value_name = "PORT",
        value_delimiter = ',',
        required = true
    )]
    inputs: Vec<String>,

    /// Where packets go: one for all ports, or one each, in order; without it they are only counted
    #[arg(long = "out", value_name = "PORT", value_delimiter = ',')]
    outputs: Vec<String>,

    /// Let one capture enter at two ports: packets sent from these prefixes enter at this port,
    /// as in lan=10.0.0.0/8
    #[arg(long, value_name = "PORT=CIDR[,CIDR]")]
    split: Option<Split>,

    /// How many cores to use
    #[arg(long, value_name = "N", default_value_t = 1)]
    cores: usize,

    /// Set a parameter of the function
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Give a state object room for this many entries, whatever its author declared
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// What a map holds before the first packet, from a file: a JSON array of objects with `key` and
    /// `value`, or lines of KEY,VALUE
    #[arg(long = "map", value_name = "NAME=FILE")]
    maps: Vec<String>,

    /// Packets given to the function together
    #[arg(long, value_name = "N", default_value_t = BURST, value_parser = burst)]
    burst: usize,

    /// Where packets go that the function passes to the host
    #[arg(long, value_name = "PORT")]
    pass: Option<String>,

    /// Write the records of ring buffers as JSON lines
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,

    /// Seed of sketches and random draws; the same seed gives the same run
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Which program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Rounds over a mem: capture (1 unless another limit is given)
    #[arg(long, value_name = "N")]
    loops: Option<u64>,

    /// Stop after this many packets
    #[arg(long, value_name = "N")]
    packets: Option<u64>,

    /// Stop after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Leave out the prefetching passes, to measure what they give
    #[arg(long)]
    no_prefetch: bool,

    /// Compile with AddressSanitizer and UndefinedBehaviorSanitizer; a defect ends the run with exit
    /// status 86
    #[arg(long)]
    sanitize: bool,

    /// Print the account as one JSON document
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Ports: FILE.pcap, FILE.pcapng, - (standard input and output), mem:FILE.pcap (looped from memory), \
null: (a sink).

Exit status: 0 done, 1 the program is unsafe, 2 wrong use or a port that failed.";

pub(super) fn burst(text: &str) -> Result<usize, String> {
    let most = millrace_dataplane::packet::MAX_BURST;
    let number = text.parse().ok().filter(|n| (1..=most).contains(n));
    number.ok_or_else(|| format!("a burst has 1 to {most} packets"))
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text
        .parse::<f64>()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok());
    number.ok_or_else(|| "a time in seconds, as in 2 or 0.5".into())
}

/// The JSON document of a run.
#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    seed: u64,
    burst: usize,
    prepare: Prepare,
    #[serde(flatten)]
    account: &'a Account,
}

/// Seconds from the source to the loaded module; 0 for what the cache spared.
#[derive(Serialize)]
struct Prepare {
    seconds: f64,
    compile: f64,
    load: f64,
    check: f64,
    emit: f64,
    module: f64,
    from_cache: bool,
}

impl Prepare {
    fn of(function: &Function) -> Self {
        let t = &function.timings;
        let [compile, load, check, emit, module] =
            [t.compile, t.load, t.check, t.emit, t.module].map(|d| d.as_secs_f64());
        let seconds = function.prepared.as_secs_f64();
        Self {
            seconds,
            compile,
            load,
            check,
            emit,
            module,
            from_cache: function.from_cache,
        }
    }
}

impl Run {
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Runs it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        self.sane()?;
        if self.sanitize {
            sanitize::ensure()?;
        }
        let make = Make {
            set: self.set.clone(),
            capacity: self.capacity.clone(),
            program: self.program.clone(),
            sanitize: self.sanitize,
        };
        let function = Function::load(&self.nf, &make)?;
        let account = self.between_ports(&function)?;
        let text = account::text(&function, &account);
        screen::report(self.json || self.takes_stdout(), &text);
        for failure in &account.errors {
            screen::err(&format!("error: {}\nhelp: {}", failure.error, failure.help));
        }
        if self.json {
            screen::document(&Document {
                name: &function.name,
                seed: self.seed,
                burst: self.burst,
                prepare: Prepare::of(&function),
                account: &account,
            });
        }
        Ok(if account.errors.is_empty() {
            DONE
        } else {
            WRONG
        })
    }

    /// Whether packets or records go to standard output.
    fn takes_stdout(&self) -> bool {
        let words = self.outputs.iter().chain(&self.pass).any(|w| w == "-");
        words || self.records.as_ref().is_some_and(|r| r.as_os_str() == "-")
    }

    fn sane(&self) -> Result<(), Failure> {
        if self.cores != 1 {
            return Err(Failure::wrong(format!("--cores {}: a function runs on one core", self.cores))
                .help("use --cores 1; more cores need a plan of what may run in parallel, which is the next step of this project"));
        }
        if self.json && self.takes_stdout() {
            return Err(
                Failure::wrong("--json and packets cannot both go to standard output")
                    .help("write the packets to a file"),
            );
        }
        if self.loops.is_some() && !self.inputs.iter().any(|w| port::loops(w)) {
            return Err(Failure::wrong("--loops: no input can begin again")
                .help("name the capture mem:FILE to loop it from memory"));
        }
        Ok(())
    }

    fn between_ports(&self, function: &Function) -> Result<Account, Failure> {
        let words = Words {
            inputs: &self.inputs,
            outputs: &self.outputs,
            split: self.split.as_ref(),
            pass: self.pass.as_deref(),
        };
        signal::install();
        let ports = wiring::port_names(&function.ports, &words)?;
        let limited = self.packets.is_some() || self.seconds.is_some();
        let loops = self.loops.or(if limited { None } else { Some(1) });
        let options = InputOptions {
            loops,
            stop: signal::flag(),
        };
        let sources = wiring::sources(&words, &ports, &options)?;
        let (sinks, pass) = wiring::sinks(&words, &ports)?;
        let run = millrace_dataplane::Run {
            module: function.module.clone(),
            config: Config {
                hash_seed: seed::secret(),
                sketch_seed: self.seed,
                time: 0,
                initial: function.initial.clone(),
                entries: contents::entries(
                    &self.maps,
                    &function.module,
                    &contents::programs(function.program.as_ref()),
                )?,
            },
            program: function.entry,
            prefetch: !self.no_prefetch,
            sources,
            ports,
            sinks,
            pass,
            records: self.records.as_deref().map(records).transpose()?,
            reasons: function.reasons.clone(),
            burst: self.burst,
            layout: if self.sanitize {
                Layout::Exact
            } else {
                Layout::Pooled
            },
            packets: self.packets,
            time: self.seconds,
            objects_bytes: function.objects_bytes,
        };
        let mut bar = Bar::new();
        let account =
            millrace_dataplane::run(run, signal::flag(), &mut |progress| bar.show(progress));
        bar.end();
        account.map_err(|e| {
            Failure::wrong(e).help("declare a smaller capacity, or free memory on this machine")
        })
    }
}

fn records(path: &std::path::Path) -> Result<RecordWriter, Failure> {
    let output: Box<dyn Write + Send> = if path.as_os_str() == "-" {
        Box::new(BufWriter::new(std::io::stdout()))
    } else {
        let file = File::create(path).map_err(|e| {
            Failure::wrong(format!("{}: cannot be created: {e}", path.display()))
                .help("choose another --records")
        })?;
        Box::new(BufWriter::new(file))
    };
    Ok(RecordWriter::new(&path.display().to_string(), output))
}
