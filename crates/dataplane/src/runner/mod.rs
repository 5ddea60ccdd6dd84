//! Runs of a module between captures, in the packets' own time.
//!
//! The workers are those that serve ports ([`crate::worker`]). A run over captures is a port of theirs: its sequencer
//! merges the inputs by stamp and gives out times and ingress numbers before packets are parted, and writes what
//! leaves by ingress number. A burst is cut where a timer is due, so that the timer fires between the packets it lies
//! between. So a run over the same captures gives the same output whatever the burst size, the number of workers and
//! the speed of the machine.

mod fates;
mod intake;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod lane;
mod sequencer;
mod sinks;
mod sources;
mod timers;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod window;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millrace_steer::Owners;

pub use fates::FateWriter;
pub use intake::Intake;
pub use lane::Lane;
pub(crate) use sequencer::Sequencer;
pub use sinks::{RecordWriter, Sink, Sinks, hex};
pub use sources::{Entry, Sources};
pub use timers::Timers;
pub(crate) use window::{Batch, Kept, Part};

use crate::account::Account;
use crate::mailbox::{Desk, Job, Mailbox};
use crate::module::{Config, Module, ModuleError};
use crate::packet::Layout;
use crate::port::Queue;
use crate::replica::{Group, Sequencing, SequencingError, Small};
use crate::share::Share;
use crate::worker::keep::Keep;
use crate::worker::{self, Behaviour, Code, Drive, Ingress, Link, ModuleCode, Serve};

/// The burst size that is best on most functions: below, prefetching has too little to overlap;
/// above, what it fetched is evicted again.
pub const BURST: usize = 32;

/// Everything that a run needs.
pub struct Run {
    /// the function
    pub module: Arc<Module>,
    /// its state at start; `time` is set to that of the first packet
    pub config: Config,
    /// which packet entry to run
    pub program: usize,
    /// whether to use the prefetching passes
    pub prefetch: bool,
    /// packets
    pub sources: Sources,
    /// names of the function's ports, at least one
    pub ports: Vec<String>,
    /// where they lead
    pub sinks: Sinks,
    /// where packets for the host's own stack go, if anywhere
    pub pass: Option<Sink>,
    /// where records go, if anywhere
    pub records: Option<RecordWriter>,
    /// where the fate of each packet goes, if anywhere
    pub fates: Option<FateWriter>,
    /// names of the drop reasons, by index
    pub reasons: Vec<String>,
    /// packets a burst, 1 to [`crate::packet::MAX_BURST`]
    pub burst: usize,
    /// how buffers are laid out
    pub layout: Layout,
    /// stop after this many packets
    pub packets: Option<u64>,
    /// stop after this much time
    pub time: Option<Duration>,
    /// memory that the program's objects take, as predicted from their declarations, bytes
    pub objects_bytes: u64,
    /// where requests from outside wait for the moment between two bursts
    pub mailbox: Option<Arc<Mailbox>>,
    /// what is done with the state at the end, after `ON_STOP`
    pub at_end: Option<Job>,
    /// the state that the run takes up and leaves, if it does
    pub keep: Option<Arc<Keep>>,
    /// where only heavy keys are replicated on several workers: the code of that
    pub small: Option<Arc<Small>>,
}

/// What an observer sees now and then.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// packets read
    pub read: u64,
    /// how far the inputs are, 0 to 1; none when that cannot be known
    pub share: Option<f64>,
}

/// How long a worker without packets waits for some before it looks at requests and signals again.
const IDLE: Duration = Duration::from_millis(5);

/// Everything that a run on several workers needs.
pub struct Parallel {
    /// what a run on one needs; its mailbox is not used
    pub run: Run,
    /// for each port, who owns the packets that come in there; numbers of workers that do not exist are
    /// taken for the last one
    pub owners: Vec<Owners>,
    /// how each object stands on the workers, in the module's order; those that are missing are copies
    pub shares: Vec<Share>,
    /// how far apart in the packets' time workers may be, ns; none: as far as the windows that are read ahead are. For
    /// workers that share state: what expires is decided by whoever is first
    pub apart: Option<u64>,
    /// how many workers, at least 1
    pub workers: usize,
    /// the processor that each worker is pinned to; fewer than workers: the others are not pinned
    pub cpus: Vec<usize>,
    /// where requests from outside wait, one for each worker
    pub mailboxes: Vec<Arc<Mailbox>>,
}

/// Runs on this thread until the inputs end, a limit is reached, an output fails, or `stop` is raised; then drains
/// and accounts.
///
/// Errors of ports do not fail the call: they end the run and stand in the account, which is complete
/// up to there.
///
/// # Errors
/// [`ModuleError::Create`] when the state cannot be made.
pub fn run(
    run: Run,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress),
) -> Result<Account, ModuleError> {
    let parallel = Parallel {
        owners: Vec::new(),
        shares: Vec::new(),
        apart: None,
        workers: 1,
        cpus: Vec::new(),
        mailboxes: run.mailbox.clone().into_iter().collect(),
        run,
    };
    open(parallel, false, stop, observe)
}

/// The same on several workers, whose order of packets stands in the fates.
///
/// # Errors
/// As [`run`].
pub fn run_parallel(
    parallel: Parallel,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress),
) -> Result<Account, ModuleError> {
    open(parallel, true, stop, observe)
}

fn open(
    mut parallel: Parallel,
    commits: bool,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress),
) -> Result<Account, ModuleError> {
    let mailboxes = parallel.mailboxes.clone();
    await_first(&mut parallel.run, &mailboxes, stop);
    let account = between(parallel, commits, stop, observe);
    // Whoever waits for an answer must not wait for a worker that is no more.
    for mailbox in &mailboxes {
        mailbox.close();
    }
    account
}

/// Hosts workers between the inputs and the outputs.
fn between(
    mut parallel: Parallel,
    commits: bool,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress),
) -> Result<Account, ModuleError> {
    let first = parallel.run.sources.next();
    let start = first.map_or(0, |(record, _)| record.time_ns);
    let replicas = parallel.replicas(start)?;
    let mut serve = parallel.serve(start, replicas.as_ref());
    let sequenced = replicas.as_ref().map_or(0, Sequencing::bytes);
    // In the order of rows packets stand as they came.
    // Transactions have no places in an order, but for those that run alone.
    let transacts = serve.chain.iter().any(worker::chain::Link::transacts);
    let order = (commits && replicas.is_none() && !transacts, replicas);
    let ingress = Arc::new(Ingress::new(serve.ports.len()));
    let mut sequencer = Sequencer::new(parallel, &serve.chain, &ingress, start, order);
    let group = sequencer.group();
    let lanes = sequencer.lanes();
    let (hosted, sequencer) = if lanes.is_empty() {
        serve.workers = vec![vec![Box::new(Lane::alone(sequencer))]];
        let mut hosted = worker::host(serve, Some(ingress), stop, Drive::Work(observe))?;
        let sequencer = hosted.sequencer.take();
        (hosted, sequencer)
    } else {
        let lanes = lanes.into_iter();
        serve.workers = lanes.map(|l| vec![Box::new(l) as Box<dyn Queue>]).collect();
        let mut feed = |deadline| sequencer.work(stop, deadline, observe);
        let hosted = worker::host(serve, Some(ingress), stop, Drive::Feed(&mut feed))?;
        (hosted, Some(sequencer))
    };
    if let Some(group) = group {
        group.end();
    }
    let mut account = hosted.account;
    if let Some(sequencer) = sequencer {
        sequencer.complete(hosted.records, &mut account);
        account.memory.takes(sequenced);
    }
    Ok(account)
}

/// Rows of the ring: more than lie in the windows that are read ahead, with two heartbeats for each packet.
const ROWS: usize = 1 << 15;

impl Parallel {
    /// What numbers the packets of several workers whose state is replicated; `start` is the time of the first, ns.
    fn replicas(&self, start: u64) -> Result<Option<Sequencing>, ModuleError> {
        let (run, workers) = (&self.run, self.workers);
        let small = run.small.as_ref();
        let (module, config) = small.map_or((&run.module, &run.config), |s| (&s.module, &s.config));
        if workers < 2 || module.row_bytes().is_none() {
            return Ok(None);
        }
        let failed = |e: SequencingError| ModuleError::Create {
            path: module.path().to_owned(),
            what: e.to_string(),
        };
        let group = match small {
            Some(small) => Group::of_heavies(small, workers, ROWS, start),
            // Where workers have parts, packets go to their owners.
            None if self.shares.iter().any(Share::divided) => {
                Group::of_parts(module, (workers, ROWS), start, self.owners.clone())
            }
            None => Group::new(module, workers, ROWS, start),
        };
        let mut group = group.map_err(|e| failed(e.into()))?;
        if let Some(keep) = &run.keep {
            Group::go_on(&mut group, &keep.begin, true, module.timers());
        }
        let of = (run.program, run.ports.len() as u32);
        let made = Sequencing::new(&group, module, config, of);
        made.map(Some).map_err(failed)
    }

    /// The workers that it takes, whose queues are missing; `start` is the time of the first packet, ns.
    fn serve(&mut self, start: u64, replicas: Option<&Sequencing>) -> Serve {
        let run = &mut self.run;
        let ports = run.ports.len();
        // One worker has the whole.
        let shares = match self.workers {
            0 | 1 => Vec::new(),
            _ => self.shares.clone(),
        };
        Serve {
            chain: vec![Link {
                name: String::new(),
                code: Code::Module(ModuleCode {
                    module: run.module.clone(),
                    config: Config {
                        time: start,
                        ..std::mem::take(&mut run.config)
                    },
                    program: run.program,
                    prefetch: run.prefetch,
                    behaviour: Behaviour::default(),
                    replicas: replicas.map(|r| r.group().clone()),
                    small: replicas.and(run.small.clone()),
                }),
                reasons: run.reasons.clone(),
                objects_bytes: run.objects_bytes,
                shares,
                slow: None,
                linked: false,
            }],
            topology: None,
            ports: std::mem::take(&mut run.ports),
            owners: Vec::new(),
            workers: Vec::new(),
            words: vec![String::new()],
            of_port: vec![None; ports],
            pass: None,
            cpus: self.cpus.clone(),
            holds: Vec::new(),
            facts: Vec::new(),
            records: None,
            burst: run.burst,
            packets: None,
            time: run.time,
            busy: true,
            mailboxes: self.mailboxes.clone(),
            at_end: run.at_end.take(),
            keep: run.keep.clone(),
            moves: None,
        }
    }
}

/// Waits for the first packet, whose time the state begins with. Requests are answered all the same,
/// without a state.
fn await_first(run: &mut Run, mailboxes: &[Arc<Mailbox>], stop: &AtomicBool) {
    let deadline = run.time.and_then(|time| Instant::now().checked_add(time));
    while !run.sources.ready(IDLE) {
        for job in mailboxes.iter().flat_map(|m| m.take()) {
            let mut desk = Desk::stateless(0, &Account::default);
            job(&mut desk);
            if desk.order.is_some() {
                run.sources.drain();
            }
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late || stop.load(Ordering::Relaxed) {
            run.sources.drain();
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_parallel;
