//! `millrace run`: a network function between ports.

mod beside;
pub mod chain;
mod claims;
pub mod cluster;
mod element;
mod elephant;
mod exported;
mod kernel;
mod linking;
mod lookout;
mod maker;
mod offload;
mod patience;
mod printed;
mod reload;
mod sane;
pub mod settings;
mod state;
mod traced;
mod workers;

pub use element::Element;
pub use settings::Invoked;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use millrace::place::Traffic;
use millrace::{Arrangement, Asked, Function, Make, Ports};
use millrace_chain::{Description, What};
use millrace_dataplane::account::Account;
use millrace_dataplane::port;
use millrace_dataplane::privilege::Aside;
use millrace_dataplane::replica::ROWS;
use millrace_dataplane::runner::{BURST, FateWriter, RecordWriter};
use millrace_export::{Collector, Counts};
use millrace_place::Strategy;
use millrace_plan::cost::Prediction;
use millrace_traffic::split::Split;
use serde::Serialize;

use crate::failure::{DONE, Failure, WRONG};
use crate::notify::Notify;
use crate::outside::Outside;
use crate::strategy::Wished;
use crate::{account, function, in_kernel, log, metrics, routing, sanitize, screen};

/// Run a network function between ports and account for every packet.
#[derive(Args, Clone)]
#[command(after_help = AFTER)]
pub struct Run {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, a bundle,
    /// a module (.so), or the name of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs; several run in a row, each
    /// one's second port leading to the next one's first. guest:'PROGRAM ARGUMENTS' hosts an unmodified
    /// program, whose interface is called @ (docs/guests.md). FILE.toml describes a chain (docs/chains.md)
    #[arg(required = true, value_name = "NF")]
    nfs: Vec<String>,

    /// Ports of both directions, one for each of the function's, in order: KIND:NAME, or an interface's name alone for
    /// the best kind that the machine allows
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    ports: Vec<String>,

    /// Where packets come from: one port each, in order; captures are merged by time stamp
    #[arg(long = "in", value_name = "PORT", value_delimiter = ',')]
    inputs: Vec<String>,

    /// Where packets go: one for all ports, or one each, in order; without it they are only counted
    #[arg(long = "out", value_name = "PORT", value_delimiter = ',')]
    outputs: Vec<String>,

    /// Let one capture enter at two ports: packets sent from these prefixes enter at this port,
    /// as in lan=10.0.0.0/8
    #[arg(long, value_name = "PORT=CIDR[,CIDR]")]
    split: Option<Split>,

    /// How many cores to use: a worker each, with queues of its own at every live port (docs/parallel.md)
    #[arg(long, value_name = "N", default_value_t = 1)]
    cores: usize,

    /// How state lives on several cores
    #[arg(long, value_name = "STRATEGY", value_enum, default_value_t)]
    strategy: Wished,

    /// The NIC whose hash steers packets, as for `millrace plan`; `software`: workers hash themselves
    #[arg(long, value_name = "MODEL", default_value = "software")]
    nic: String,

    /// Who gets which packet, instead of what the plan says: options of receive side scaling (nic, key, fields,
    /// table, symmetric), as in key=6d5a…&nic=generic, for all ports or one
    #[arg(long, value_name = "[PORT:]OPTIONS")]
    steer: Vec<String>,

    /// Balance the indirection table to this capture before anything runs, so that the busiest worker has as few
    /// of its packets as can be; with --split as the inputs. For plans that shard
    #[arg(long, value_name = "FILE", conflicts_with = "steer")]
    trace: Option<String>,

    /// The processors that workers are pinned to, in order; without it the first that are allowed
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    cpus: Vec<usize>,

    /// Rows that the ring between a sequencer and the replicas of a function holds, for --strategy replicate between live
    /// ports: so far a worker may fall behind (docs/replication.md)
    #[arg(long, value_name = "ROWS", default_value_t = ROWS, value_parser = rows)]
    history_rows: usize,

    /// Keep looking for packets when none come, instead of sleeping until some do
    #[arg(long)]
    busy: bool,

    /// Packet classes of a chain with guests on several cores: flows are dealt out to so many, each has instances of
    /// the guests of its own, and moves with them from worker to worker (docs/guests.md); one a core by default
    #[arg(long, value_name = "N")]
    classes: Option<u16>,

    /// Let buckets of the indirection table move between workers with their state, and move some as the load shifts, looking so often
    /// (docs/moving.md); 0: only by `millrace ctl class move`
    #[arg(long, value_name = "MS", num_args = 0..=1, require_equals = true, default_missing_value = "100")]
    balance: Option<u64>,

    /// Draw another secret key for the hash so often, with --balance: all state goes where it leads (docs/moving.md)
    #[arg(long, value_name = "SECONDS", value_parser = rotation, requires = "balance")]
    rotate_every: Option<Duration>,

    #[command(flatten)]
    cluster: cluster::Membership,

    /// Set a parameter of the function; of several functions, NF:NAME=VALUE
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Give a state object room for this many entries, whatever its author declared; of several
    /// functions, NF:OBJECT=N
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    #[command(flatten)]
    outside: Outside,

    #[command(flatten)]
    state: state::Flags,

    /// The routing table that bpf_fib_lookup is answered from: a file (docs/routes.md), or `system`, or
    /// `system:eth0,eth1` for the interfaces of ports 0 and 1
    #[arg(long, value_name = "FILE|system")]
    routes: Option<String>,

    /// Packets given to the function together
    #[arg(long, value_name = "N", default_value_t = BURST, value_parser = burst)]
    burst: usize,

    /// Where packets go that the function passes to the host
    #[arg(long, value_name = "PORT")]
    pass: Option<String>,

    /// Write the records of ring buffers as JSON lines
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,

    /// Write what became of each packet as JSON lines, in ingress order: its number, port, time and worker, and,
    /// where workers share state, its place in the order of commits (docs/parallel.md). For runs over captures
    #[arg(long, value_name = "FILE")]
    fates: Option<PathBuf>,

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

    /// Whether connected functions of a chain become one program with one plan (docs/chains.md); without it they do over captures
    /// on one core, on several where their plan was made before and shards what the row would lock, and run one after the other elsewhere
    #[arg(long, value_name = "WHEN", value_enum)]
    link: Option<linking::Linking>,

    /// Count what packets of several workers meet of each other's, by source line, for `millrace ctl profile`; it costs a
    /// few percent (docs/profile.md)
    #[arg(long)]
    profile: bool,

    /// Leave out the prefetching passes, to measure what they give
    #[arg(long)]
    no_prefetch: bool,

    /// Compile with AddressSanitizer and UndefinedBehaviorSanitizer; a defect ends the run with exit
    /// status 86
    #[arg(long)]
    sanitize: bool,

    /// Answer scrapes of OpenMetrics while workers serve ports: a port of this machine's own, or
    /// ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address)]
    metrics: Option<SocketAddr>,

    /// Export flow records of one packet in N of each worker; with --export (docs/export.md)
    #[arg(long, value_name = "1/N", requires = "export", value_parser = exported::sample)]
    sample: Option<u32>,

    /// Where flow records of sampled packets go: ipfix:HOST:PORT by UDP, ipfix+tcp:HOST:PORT by TCP
    #[arg(long, value_name = "COLLECTOR", requires = "sample", value_parser = exported::collector)]
    export: Option<Collector>,

    /// Let a switch decide on packets that need no state: rules are installed in a bridge of Open vSwitch when the run starts, watched,
    /// and taken out when it ends. For each device of the chain the bridge's port, and the one that leads to this run:
    /// ovs:BRIDGE?inside=1:11&outside=2:12; assume=headers+options+padding+mtu as for `chain`
    #[arg(long, value_name = "ovs:BRIDGE?DEVICE=PORT:PORT&…")]
    offload: Option<offload::Word>,

    /// The least grave messages that are written on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: log::Level,

    /// How they are written: as text for people, or as a JSON document a line (docs/operate.md)
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: log::Format,

    /// Print the account as one JSON document
    #[arg(long)]
    json: bool,

    /// What keys of steering are drawn from
    #[arg(skip)]
    drawn: Option<[u8; 32]>,

    /// The chain file that describes the run
    #[arg(skip)]
    origin: Option<Arc<reload::Origin>>,
}

const AFTER: &str = "\
Ports: FILE.pcap, FILE.pcapng, - (standard input and output), mem:FILE.pcap (looped from memory), \
null: (a sink); live, in both directions: IF, afpacket:IF, afxdp:IF, tap:NAME, dpdk:DEVICE; xdp:IF runs the function in the kernel (docs/ports.md).

Exit status: 0 done, 1 the program is unsafe or --state has what does not fit, 2 wrong use or a port that failed.";

pub(super) fn burst(text: &str) -> Result<usize, String> {
    let most = millrace_dataplane::packet::MAX_BURST;
    let number = text.parse().ok().filter(|n| (1..=most).contains(n));
    number.ok_or_else(|| format!("a burst has 1 to {most} packets"))
}

pub(super) fn rows(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (64..=1 << 24).contains(n));
    number.ok_or_else(|| "a ring has 64 to 16777216 rows".into())
}

fn rotation(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(100);
    let every = seconds(text)?;
    match every < least {
        true => Err("at least 0.1 s: all entries move each time".into()),
        false => Ok(every),
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text
        .parse::<f64>()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok());
    number.ok_or_else(|| "a time in seconds, as in 2 or 0.5".into())
}

/// What a run has of the system besides its ports.
struct Serving {
    /// capabilities, until the ports are open
    aside: Aside,
    /// the service manager, if it started this run
    notify: Notify,
}

/// The JSON document of a run.
#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    seed: u64,
    burst: usize,
    prepare: Prepare,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted: Option<Prediction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export: Option<Counts>,
    #[serde(flatten)]
    account: &'a Account,
}

/// Seconds from the source to the loaded module; 0 for what the cache spared, and for guests.
#[derive(Default, Serialize)]
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
    /// With the words of its ports whole.
    pub fn joined(&self) -> Self {
        Self {
            ports: port::joined(&self.ports),
            inputs: port::joined(&self.inputs),
            outputs: port::joined(&self.outputs),
            ..self.clone()
        }
    }

    /// The same on one core.
    fn sequential(&self) -> Self {
        Self {
            cores: 1,
            cpus: self.cpus.iter().copied().take(1).collect(),
            strategy: Wished::default(),
            trace: None,
            ..self.clone()
        }
    }

    /// Runs a chain, and gives the exit status.
    fn perform(&self, chain: &Description, serving: Serving) -> Result<u8, Failure> {
        log::set(self.log_level, self.log_format);
        self.fed(chain)?;
        self.fits(chain)?;
        if let Some(wrong) = self.spelled().next() {
            return Err(wrong);
        }
        if self.strategy == Wished::SEQUENTIAL {
            return self.sequential().perform(chain, serving);
        }
        if self.sanitize {
            sanitize::ensure()?;
        }
        // Before anything is opened or made: what it refuses leaves nothing behind.
        let described = self.clustered()?;
        let held = self.held()?;
        let mut seeded = Self {
            seed: held.as_ref().map_or(self.seed, state::Held::seed),
            ..self.clone()
        };
        seeded.cluster.described = described;
        let shared = seeded.cluster.described.as_ref().map(|c| c.secret());
        let own = held.as_ref().map(state::Held::secret).or(shared);
        seeded.drawn = own.or_else(|| Some(millrace::secret_keys()));
        seeded.over(chain, held, serving)
    }

    /// Runs what is described, with the state that is taken up.
    fn over(
        &self,
        chain: &Description,
        held: Option<state::Held>,
        serving: Serving,
    ) -> Result<u8, Failure> {
        let in_kernel =
            in_kernel::asked(self.ports.iter().chain(&self.inputs).chain(&self.outputs));
        let linked = self.linked(chain, in_kernel)?;
        let Some(linked) = linked else {
            return self.these((chain, None), held, serving);
        };
        // Its elements are not those of the file any more, which is not read again.
        let own = Self {
            origin: None,
            ..self.clone()
        };
        own.these((&linked.chain, linked.arranged.as_ref()), held, serving)
    }

    /// Runs these elements, the only one as is known already.
    fn these(
        &self,
        (chain, mut known): (&Description, Option<&Arrangement>),
        held: Option<state::Held>,
        serving: Serving,
    ) -> Result<u8, Failure> {
        let mut elements = Vec::new();
        let mut routes = Vec::new();
        let in_kernel =
            in_kernel::asked(self.ports.iter().chain(&self.inputs).chain(&self.outputs));
        let ports = self.between();
        let mut predicted = None;
        let guest = chain
            .elements
            .iter()
            .find(|e| matches!(e.what, What::Guest(_)));
        if let Some(guest) = guest {
            self.hosts(&chain::word(guest), in_kernel)?;
        }
        for described in &chain.elements {
            let asked = match &described.what {
                What::Guest(guest) => {
                    let taken = self.json || self.takes_stdout();
                    let classes = self.classes();
                    elements.push(Element::guest(chain, described, guest, taken, classes)?);
                    continue;
                }
                What::Function(function) => function,
            };
            let nf = chain::path(chain, &asked.word);
            let table = self.routes.as_deref();
            let mut load = || {
                let mut make = self.make(chain, described, asked)?;
                let several = self.cores > 1 || self.cluster.described.is_some();
                if several && !in_kernel {
                    let shared = self.cluster.described.as_ref().map(|c| c.secret());
                    let secret = held.as_ref().map(state::Held::secret).or(shared);
                    let own;
                    let arranged = match known.take() {
                        Some(known) => known,
                        None => {
                            own = self.arrange((chain, described), &nf, &make, secret)?;
                            &own
                        }
                    };
                    predicted = arranged.predicted();
                    make = arranged.divided(&make);
                }
                make.profile = self.profile;
                routing::load(&nf, &make, table, ports.receiving())
            };
            let (function, entries) = load().map_err(|e| chain::failed(chain, described, e))?;
            elements.push(Element::Function(Box::new(function)));
            routes = entries;
        }
        let replicates = |e: &Element| {
            let placement = e.function().and_then(|f| f.placement.as_ref());
            placement.is_some_and(|p| p.replicates())
        };
        if elements.len() > 1 && self.state.often() && elements.iter().any(replicates) {
            return Err(Failure::wrong(
                "--state-every: in a chain replicas have the state of a row when others have that of other packets",
            )
            .help("leave it out: the state is saved at the end of the run"));
        }
        let first = elements.iter().find_map(Element::function);
        let captures = !in_kernel
            && guest.is_none()
            && chain.file.is_none()
            && elements.len() == 1
            && !ports.live()
            && !(self.cores == 1 && first.is_some_and(|f| f.slow.is_some()));
        if self.cores > 1 && captures && first.is_some_and(|f| f.slow.is_some()) {
            screen::err(
                "note: over captures the slow path is beside one worker: on several cores its packets are passed to the host",
            );
        }
        if self.fates.is_some() && !captures {
            return Err(Failure::wrong(
                "--fates is for one function between captures, without a slow path",
            )
            .help("leave it out, or name captures as --in and --out"));
        }
        if self.sample.is_some() && in_kernel {
            return Err(
                Failure::wrong("--sample: the kernel has the packets of xdp: ports")
                    .help("serve the interface by afpacket: or afxdp:"),
            );
        }
        let offloaded = match &self.offload {
            Some(word) => Some(offload::Offloaded::start(word, chain)?),
            None => None,
        };
        let (account, export) = if in_kernel {
            let first = first.ok_or_else(|| Failure::wrong("no function is named"))?;
            if held.is_some() {
                return Err(
                    Failure::wrong("--state: the kernel has the state of xdp: ports").help(
                        "keep maps with --pin, or serve the interface by afpacket: or afxdp:",
                    ),
                );
            }
            (self.by_kernel(first, serving)?, None)
        } else if captures && self.metrics.is_some() {
            return Err(
                Failure::wrong("--metrics: a run over captures ends before anybody looks")
                    .help("serve a live port, or read the account with --json"),
            );
        } else {
            self.by_workers(
                (chain, held),
                &elements,
                &routes,
                (&ports, captures),
                serving,
            )?
        };
        if let Some(offloaded) = offloaded {
            offloaded.end()?;
        }
        let names: Vec<_> = elements.iter().map(Element::name).collect();
        let name = chain.name.clone().unwrap_or_else(|| names.join(", "));
        let mut text = account::text(&name, first, (&account, predicted));
        text.push_str(&export.map(account::export).unwrap_or_default());
        screen::report(self.json || self.takes_stdout(), &text);
        for failure in &account.errors {
            log::error(&failure.error, &failure.help);
        }
        if self.json {
            screen::document(&Document {
                name: &name,
                seed: self.seed,
                burst: self.burst,
                prepare: first.map(Prepare::of).unwrap_or_default(),
                predicted,
                export,
                account: &account,
            });
        }
        Ok(if account.errors.is_empty() {
            DONE
        } else {
            WRONG
        })
    }

    /// Refuses a guest where it cannot be hosted.
    fn hosts(&self, word: &str, in_kernel: bool) -> Result<(), Failure> {
        if in_kernel {
            return Err(
                Failure::wrong(format!("{word}: a guest cannot run in the kernel"))
                    .help("serve the interface by afpacket: or afxdp:"),
            );
        }
        let ports = self.between();
        if self.cores > 1
            && let Some(input) = ports.receiving().iter().find(|w| !port::is_live(w))
        {
            return Err(Failure::wrong(format!(
                "--cores {}: {input} is one sequence of packets, which workers that host `{word}` cannot share",
                self.cores
            ))
            .help("use --cores 1, or live ports, whose packets are dealt out in classes"));
        }
        Ok(())
    }

    /// How many instances of each guest there are.
    pub fn classes(&self) -> u16 {
        let cores = u16::try_from(self.cores).unwrap_or(u16::MAX);
        match self.cores {
            1 => 1,
            _ => self.classes.unwrap_or(cores),
        }
    }

    /// How a function runs on several cores, which the user is told.
    fn arrange(
        &self,
        (chain, described): (&Description, &millrace_chain::Element),
        nf: &str,
        make: &Make,
        secret: Option<[u8; 32]>,
    ) -> Result<Arrangement, Failure> {
        let trace = self.trace.as_ref();
        let trace = trace.map(|t| Ports::captures(std::slice::from_ref(t), self.split.as_ref()));
        let row = chain.elements.len() > 1;
        if row && self.strategy == Wished::HYBRID {
            return Err(Failure::wrong("--strategy hybrid is for one function").help(
                "ask for replicate, by which the first function is replicated; or leave it out: in a chain any worker gets any packet, and \
                 state that packets write is under a lock",
            ));
        }
        let replicates = self.strategy == Wished::REPLICATE && first(chain, described);
        if row && self.strategy == Wished::SHARD {
            // Nothing says yet what the steering of one would do to the next.
            return Err(Failure::wrong("--strategy shard is for one function").help(
                "leave it out: in a chain any worker gets any packet, and state that packets write is under a lock",
            ));
        }
        // State that is kept has to find the strategy of the run before, which measuring may not choose again.
        let free = self.strategy == Wished::default() && self.steer.is_empty() && secret.is_none();
        let traffic = (!row && free && self.trace.is_none())
            .then(|| Traffic::of(&self.between()))
            .flatten();
        let asked = Asked {
            cores: self.cores,
            strategy: self.strategy.0,
            nic: &self.nic,
            trace: trace.as_ref(),
            // The same as long as the run goes on: what comes into its chain later gets packets by it.
            secret: secret.or(self.drawn),
            copied: self.cluster.is_copied(),
            ..Asked::default()
        };
        // In a row any packet goes to any worker: where that is right as it is, or under a lock.
        let either = [Wished::SPREAD, Wished::LOCK].map(|w| w.0);
        let alike = [Wished::default(), Wished::REPLICATE].contains(&self.strategy);
        let strategies = match row && alike && !replicates {
            true => &either[..],
            false => &[asked.strategy],
        };
        let found = function::arrange(
            nf,
            make,
            &self.steer,
            &asked,
            (strategies, traffic.as_ref()),
        );
        let found = found.map_err(|error| match strategies.len() {
            1 => error,
            // Nobody asked for the strategy that it names.
            _ => Failure {
                what: format!(
                    "in a chain on several cores any worker gets any packet: {}",
                    error.what
                ),
                ..error
            },
        })?;
        let locked = found
            .plan
            .as_ref()
            .is_some_and(|p| p.strategy == Strategy::Lock);
        if strategies.len() > 1 && locked {
            screen::err(&format!(
                "{nf}: in a chain on several cores any worker gets any packet, so what packets write is under a lock"
            ));
        }
        for reason in &found.reasons {
            screen::err(reason);
        }
        Ok(found)
    }

    /// Where packets come from and go to.
    pub fn between(&self) -> Ports {
        Ports {
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            both: self.ports.clone(),
            split: self.split.clone(),
            pass: self.pass.clone(),
        }
    }

    /// Rounds over a source that can begin again.
    fn rounds(&self) -> Option<u64> {
        let limited = self.packets.is_some() || self.seconds.is_some();
        self.loops.or(if limited { None } else { Some(1) })
    }

    /// Whether packets or records go to standard output.
    fn takes_stdout(&self) -> bool {
        let words = self.outputs.iter().chain(&self.pass).any(|w| w == "-");
        words || self.records.as_ref().is_some_and(|r| r.as_os_str() == "-")
    }
}

/// Whether an element is the one that port 0 of the chain leads to.
fn first(chain: &Description, described: &millrace_chain::Element) -> bool {
    let first = chain.entries.first().map(|port| port.element.as_str());
    let first = first.or(chain.elements.first().map(|e| e.name.as_str()));
    first == Some(described.name.as_str())
}

fn fates(path: &std::path::Path) -> Result<FateWriter, Failure> {
    let file = File::create(path).map_err(|e| {
        Failure::wrong(format!("{}: cannot be created: {e}", path.display()))
            .help("choose another --fates")
    })?;
    let name = path.display().to_string();
    Ok(FateWriter::new(&name, Box::new(BufWriter::new(file))))
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
