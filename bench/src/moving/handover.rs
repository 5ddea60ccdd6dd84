//! Cost of handing all buckets of a function to another machine, on one processor: ns of processor time an entry for each step, and entries a
//! second for all of them, which is both machines' work.
//!
//! Packets of a generated trace make the state, on two workers; then what one has goes to the other as it goes to another machine:
//! looked for, taken out, written as bytes, sent over a stream of the loopback interface to a listener in this process, read and put in. Time is the
//! process's own, so that what else the machine does counts little.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use millrace::{Job, Ports};
use millrace_cluster::{HandOver, Machine, Node, NodeId, Peers, Place, Refused, Standing, Table};
use millrace_dataplane::Module;
use millrace_dataplane::module::{Instance, Stamped};
use millrace_dataplane::moved::{Contents, from_bytes, to_bytes};
use millrace_dataplane::replica::Listing;
use millrace_peer::{Admits, Hands, Link, Listener, Secret, Security};
use millrace_traffic::generate::Spec;
use rustix::time::{ClockId, clock_gettime};

use super::made::{Made, SPLIT, made, trace};
use crate::measure::pin_to;

const WORKERS: usize = 2;
const PRINT: [u8; 32] = [7; 32];

#[derive(Args)]
pub struct Handover {
    /// FUNCTION, or FUNCTION:OBJECT=N,… with the room of its objects
    #[arg(default_values = ["firewall:flows=1048576", "conntrack", "nat"])]
    functions: Vec<String>,
    /// Flows of the trace, a packet each
    #[arg(long, default_value_t = 500_000)]
    flows: u64,
    /// How often what one worker has goes to the other and back
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// A stream for each bucket, as if none were kept for the next one
    #[arg(long)]
    anew: bool,
    /// The processor that is measured on
    #[arg(long, default_value_t = 1)]
    cpu: usize,
}

impl Handover {
    pub fn measure(&self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let spec = Spec {
            packets: self.flows,
            flows: self.flows,
            zipf: 0.0,
            every_flow: true,
            rate: 10e6,
            ..Spec::default()
        };
        let trace = trace(&folder.path().join("flows.pcap"), spec)?;
        let streams = Arc::new(streams(folder.path(), self.anew)?);
        for function in &self.functions {
            measure(function, &trace, &streams, (self.turns, self.cpu))?;
        }
        Ok(())
    }
}

/// Processor time of this process, ns.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time of this thread, ns.
fn thread_now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A way to the other machine.
struct Stream {
    name: &'static str,
    hands: Hands,
    to: Node,
    /// it is begun for each bucket
    anew: bool,
    _listener: Listener,
}

/// What comes is dropped: that it is put in is measured by itself.
struct Drops;

impl Machine for Drops {
    fn buckets(&self) -> u32 {
        512
    }

    fn fingerprint(&self) -> [u8; 32] {
        PRINT
    }

    fn give(&self, _: u32) -> Result<Vec<u8>, Refused> {
        Ok(Vec::new())
    }

    fn take(&self, _: u32, _: &[u8]) -> Result<(), Refused> {
        Ok(())
    }

    fn settle(&self, _: u32, _: Place, _: Option<&[u8]>) {}
}

impl Admits for Drops {
    fn may(&self, _: u32, _: u64, _: &str) -> Result<(), Refused> {
        Ok(())
    }

    fn take(&self, _: &HandOver, _: &str) -> Result<(), Refused> {
        Ok(())
    }

    fn came(&self, _: u32, _: bool) {}
}

/// Without TLS, and with it where openssl makes certificates.
fn streams(folder: &Path, anew: bool) -> Result<Vec<Stream>> {
    let mut all = vec![stream("plain", [Security::Plain, Security::Plain], anew)?];
    let script = "set -e; E='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $E -keyout ca.key -out ca.pem -subj /CN=ca -days 2
        for n in x y; do mkdir $n; cp ca.pem $n/ca.pem
        openssl req $E -keyout $n/key.pem -subj /CN=$n -out $n/req
        echo subjectAltName=DNS:$n > $n/ext
        openssl x509 -req -in $n/req -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out $n/cert.pem -extfile $n/ext; done";
    let made = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .output()?;
    if made.status.success() {
        let [x, y] = ["x", "y"].map(|node| Security::tls(&folder.join(node)));
        all.push(stream("TLS", [x?, y?], anew)?);
    } else {
        println!("without TLS: openssl makes no certificates here");
    }
    Ok(all)
}

fn stream(name: &'static str, [x, y]: [Security; 2], anew: bool) -> Result<Stream> {
    let free = || -> Result<SocketAddr> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?) };
    let secret = Secret::new([1; 32]);
    let standing = Arc::new(Standing::new(NodeId(0), Table::empty(512)));
    let (own, peer) = (free()?, free()?);
    let link = Link::open(own, &standing, &secret, 2)?;
    let drops = Arc::new(Drops);
    let machine: Arc<dyn Machine> = drops.clone();
    let listener = Listener::begin(peer, ("y", &secret, &y), machine, drops, (&link, None))?;
    Ok(Stream {
        name,
        hands: Hands::new("x", &secret, &x, &link),
        anew,
        to: Node {
            name: "y".to_owned(),
            peer,
            life: 0,
            lease: 0,
            alive: true,
            drained: false,
            copies: false,
        },
        _listener: listener,
    })
}

/// By step: ns of processor time of all entries of a turn, in the order of turns.
#[derive(Default)]
struct Figures {
    steps: BTreeMap<(usize, String), Vec<f64>>,
    entries: u64,
    bytes: u64,
    buckets: u64,
}

impl Figures {
    fn note(&mut self, order: usize, step: &str, since: u64, entries: u64) {
        let each = (now() - since) as f64 / entries.max(1) as f64;
        let of = self.steps.entry((order, step.to_owned())).or_default();
        of.push(each);
    }

    /// Medians, and entries a second with each stream.
    fn say(self, name: &str) {
        let turns = self.steps.values().next().map_or(1, Vec::len) as u64;
        let (entries, buckets) = (self.entries / turns, self.buckets / turns);
        let each = self.bytes as f64 / self.entries.max(1) as f64;
        println!(
            "{name}: {entries} entries in {buckets} buckets, {each:.0} bytes each; ns an entry:"
        );
        let (mut all, mut ways) = (0.0, Vec::new());
        for ((_, step), mut of) in self.steps {
            of.sort_by(f64::total_cmp);
            let median = of.get(of.len() / 2).copied().unwrap_or(0.0);
            println!("    {step:24} {median:8.1}");
            match step.strip_prefix("send, ") {
                Some(way) => ways.push((way.to_owned(), median)),
                None if step.starts_with('(') => {}
                None => all += median,
            }
        }
        for (way, sent) in ways {
            println!(
                "    {:.2} million entries a second and core, {way}",
                1e3 / (all + sent)
            );
        }
    }
}

type Entries = Vec<(usize, Stamped)>;

/// All that is found of each bucket that a worker has.
fn out(
    from: &mut Instance,
    contents: &Contents,
    buckets: &[u32],
    figures: &mut Figures,
) -> Vec<(u32, Entries)> {
    let mut listing = Listing::default();
    let began = now();
    contents.begin(from, &mut listing, buckets.iter().copied());
    while !contents.step(from, &mut listing) {}
    let looked = now();
    let taken: Vec<(u32, Entries)> = buckets
        .iter()
        .map(|b| (*b, contents.take(from, &mut listing, (*b, &[]))))
        .collect();
    let entries = taken.iter().map(|(_, e)| e.len() as u64).sum();
    figures.note(1, "take out", looked, entries);
    let looked = (looked - began) as f64 / entries.max(1) as f64;
    let steps = figures.steps.entry((0, "look for".to_owned()));
    steps.or_default().push(looked);
    figures.entries += entries;
    figures.buckets += buckets.len() as u64;
    taken
}

/// To the other worker, as to another machine.
fn over(
    taken: &[(u32, Entries)],
    to: &mut Instance,
    (module, contents): (&Module, &Contents),
    streams: &[Stream],
    figures: &mut Figures,
) -> Result<()> {
    let entries: u64 = taken.iter().map(|(_, e)| e.len() as u64).sum();
    let began = now();
    let written: Vec<(u32, Vec<u8>)> = taken.iter().map(|(b, e)| (*b, to_bytes(e))).collect();
    figures.note(2, "write", began, entries);
    figures.bytes += written.iter().map(|(_, b)| b.len() as u64).sum::<u64>();
    let written: Vec<HandOver> = written
        .into_iter()
        .map(|(bucket, entries)| HandOver {
            bucket,
            version: 2,
            fingerprint: PRINT,
            entries,
        })
        .collect();
    for (at, stream) in streams.iter().enumerate() {
        let (began, own) = (now(), thread_now());
        for (life, what) in (0..).zip(&written) {
            // To a node in another life no stream is kept.
            let to = Node {
                life: if stream.anew { life } else { 0 },
                ..stream.to.clone()
            };
            stream.hands.hand(&to, what)?;
        }
        figures.note(3 + at, &format!("send, {}", stream.name), began, entries);
        let own = (thread_now() - own) as f64 / entries.max(1) as f64;
        let step = (10 + at, format!("(of it the sender's, {})", stream.name));
        figures.steps.entry(step).or_default().push(own);
    }
    let began = now();
    let read = written
        .iter()
        .map(|what| from_bytes(&what.entries, what.bucket, (module, contents)));
    let read: Vec<Entries> = read.collect::<Result<_, _>>()?;
    figures.note(6, "read", began, entries);
    let began = now();
    for entries in &read {
        contents.put(to, entries, 1).map_err(|e| anyhow!("{e}"))?;
    }
    figures.note(7, "put in", began, entries);
    Ok(())
}

fn measure(
    word: &str,
    trace: &str,
    streams: &Arc<Vec<Stream>>,
    (turns, cpu): (usize, usize),
) -> Result<()> {
    let Made {
        function,
        classes,
        contents,
    } = made(word, WORKERS, false)?;
    let table = classes.table();
    let buckets: Vec<u32> = (0..)
        .zip(&table)
        .filter(|(_, w)| **w == 0)
        .map(|(b, _)| b)
        .collect();
    let ports = Ports {
        both: vec![format!("vnic:{trace}?split={SPLIT}&measure=off")],
        ..Ports::default()
    };
    let state = Arc::<Mutex<Entries>>::default();
    let (own, of) = (state.clone(), contents.clone());
    let job = Job {
        classes: Some(classes),
        contents: Some(contents.clone()),
        loops: Some(1),
        busy: true,
        at_end: Some(Box::new(move |desk| {
            if let Some(first) = desk.state(0) {
                let all = of.take_all(first, &[]);
                own.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(all);
            }
        })),
        ..Job::of(&function, &ports).map_err(|e| anyhow!("{e}"))?
    };
    let stop: &'static AtomicBool = Box::leak(Box::default());
    let opened = job.open(&ports, stop).map_err(|e| anyhow!("{e}"))?;
    let ran = opened.run(stop, &mut |_| {}).map_err(|e| anyhow!("{e}"))?;
    if !ran.errors.is_empty() {
        bail!("{:?}", ran.errors);
    }
    // Threads of the run, which never rest, have ended: what this process takes from here on is the hand-over.
    pin_to(cpu)?;
    let create = |_| -> Result<Instance> {
        let made = Instance::create(function.module.clone(), &function.state(1, Vec::new()));
        made.map_err(|e| anyhow!("{e}"))
    };
    let mut workers: Vec<Instance> = (0..WORKERS).map(create).collect::<Result<_>>()?;
    let state = std::mem::take(&mut *state.lock().unwrap_or_else(PoisonError::into_inner));
    let first = worker(&mut workers, 0)?;
    contents.put(first, &state, 1).map_err(|e| anyhow!("{e}"))?;
    let of = (&*function.module, &contents);
    let figures = to_and_fro(&mut workers, of, (&buckets, turns), streams)?;
    figures.say(&function.name);
    Ok(())
}

/// What the first worker has goes to the second and back, so many times.
fn to_and_fro(
    workers: &mut [Instance],
    of: (&Module, &Contents),
    (buckets, turns): (&[u32], usize),
    streams: &[Stream],
) -> Result<Figures> {
    let mut all = Figures::default();
    for turn in 0..2 * turns {
        let taken = out(worker(workers, turn % 2)?, of.1, buckets, &mut all);
        over(
            &taken,
            worker(workers, 1 - turn % 2)?,
            of,
            streams,
            &mut all,
        )?;
    }
    // As each bucket would be looked for by itself.
    let from = worker(workers, 0)?;
    for bucket in buckets.iter().take(8) {
        let mut listing = Listing::default();
        let began = now();
        of.1.begin(from, &mut listing, [*bucket]);
        while !of.1.step(from, &mut listing) {}
        let entries = all.entries / all.buckets.max(1);
        all.note(8, "(look for one bucket)", began, entries);
    }
    Ok(all)
}

fn worker(workers: &mut [Instance], number: usize) -> Result<&mut Instance> {
    workers.get_mut(number).context("there is no such worker")
}
