//! Workers: one thread a core, each with queues of its own, running functions over bursts.
//!
//! This is the only loop over packets: it serves ports that are open in both directions, and runs over captures
//! ([`crate::runner`]), whose sequencer is behind the only queue of each worker. Each worker has its own copy of every
//! function's state; more than one is right only for functions whose packets write none, which the caller decides. A
//! worker receives a burst from one queue, runs it to completion, sends, and goes on to the next queue; timers, records
//! and counts are looked after between bursts. No lock is taken while packets move, except where a function hands out
//! records.

#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
pub mod chain;
pub mod change;
#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
pub mod classed;
pub mod condition;
mod counters;
#[allow(unsafe_code, reason = "packets lie in memory that queues lend")]
mod deliver;
mod entries;
#[allow(unsafe_code, reason = "its packets are named by address")]
pub mod foreign;
pub mod keep;
mod limit;
mod lives;
#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
mod made;
pub mod meeting;
mod moving;
mod order;
mod pressure;
mod replicas;
mod report;
#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
pub mod row;
mod shared;
#[allow(unsafe_code, reason = "packets lie in memory that queues lend")]
pub mod slow;
#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
mod stage;
mod tables;
#[allow(unsafe_code, reason = "descriptors point into memory that queues lend")]
mod turn;
#[allow(unsafe_code, reason = "the C library is asked to wait")]
pub(crate) mod wait;
#[allow(unsafe_code, reason = "descriptors carry addresses over the border")]
pub mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millrace_steer::Owners;
use millrace_topology::Topology;

pub use chain::{Code, Link, ModuleCode};
pub use counters::HOST_REASONS;
pub(crate) use counters::Ingress;
pub use moving::Moves;
pub use order::Behaviour;
pub(crate) use pressure::Windows;
pub use shared::Shared;

use crate::account::Account;
use crate::clock::{Rate, now};
use crate::copies::Copier;
use crate::histogram::Histogram;
use crate::mailbox::{Desk, Job, Mailbox};
use crate::module::{self, ModuleError};
use crate::packet::MAX_BURST;
use crate::place::{Stay, pin};
use crate::port::Queue;
use crate::runner::{Kept, Progress, RecordWriter, Sequencer};
use chain::Chain;
use deliver::{Delivery, Wiring};
use entries::Entries;
use keep::Keep;
use made::Made;
use turn::{Served, Worker};

/// How long the first packet is waited for before requests are looked at again.
const AWAIT: Duration = Duration::from_millis(10);

/// How often an observer is called.
const OBSERVE: Duration = Duration::from_millis(100);

/// How long the end of a run waits for elements that were taken out to end: as long as a guest may take.
const LEAVE: Duration = Duration::from_secs(20);

/// Everything that workers need.
pub struct Serve {
    /// the functions, in the order of the topology; at least one
    pub chain: Vec<Link>,
    /// how they are connected; without it one has the ports, and several stand in a row
    pub topology: Option<Topology>,
    /// names of the chain's ports
    pub ports: Vec<String>,
    /// who brings packets to their workers, a port of the chain each; none where that is not known
    pub owners: Vec<Owners>,
    /// a worker each: its queues, in the same order for all
    pub workers: Vec<Vec<Box<dyn Queue>>>,
    /// the word that named each queue
    pub words: Vec<String>,
    /// for each port of the chain, the index of the queue that leads out; none: what is sent there is
    /// counted and gone
    pub of_port: Vec<Option<usize>>,
    /// the index of the queue of packets for the host's own stack, if they go anywhere
    pub pass: Option<usize>,
    /// the processor that each worker is pinned to; fewer than workers: the others are not pinned
    pub cpus: Vec<usize>,
    /// what holds the ports open; dropped after the workers have ended
    pub holds: Vec<Box<dyn Send>>,
    /// what the ports say of themselves
    pub facts: Vec<String>,
    /// where records go, if anywhere
    pub records: Option<RecordWriter>,
    /// packets a burst, 1 to [`MAX_BURST`]
    pub burst: usize,
    /// stop after this many packets of all workers
    pub packets: Option<u64>,
    /// stop after this much time
    pub time: Option<Duration>,
    /// never sleep, even when nothing comes
    pub busy: bool,
    /// where requests from outside wait, one for each worker
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// what is done with the states of all workers when all is over
    pub at_end: Option<Job>,
    /// the state that the run takes up and leaves, if it does
    pub keep: Option<Arc<Keep>>,
    /// buckets of the only function, where these move while packets come
    pub moves: Option<Moves>,
}

/// Serves the ports until all inputs end, a limit is reached, a port fails or `stop` is raised; then
/// drains and accounts. `observe` is called now and then from this thread with what all can read.
///
/// Errors of ports do not fail the call: they end the run and stand in the account.
///
/// # Errors
/// [`ModuleError::Create`] when the state of a function cannot be made.
pub fn serve(
    serve: Serve,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(&Shared),
) -> Result<Account, ModuleError> {
    host(serve, None, stop, Drive::Watch(observe)).map(|hosted| hosted.account)
}

/// What the calling thread does while the workers work.
pub(crate) enum Drive<'a> {
    /// calls an observer now and then
    Watch(&'a mut dyn FnMut(&Shared)),
    /// is the only worker of a run over captures, and calls an observer now and then
    Work(&'a mut dyn FnMut(Progress)),
    /// feeds the workers of a run over captures, until this time
    Feed(&'a mut dyn FnMut(Option<Instant>)),
}

/// What workers leave behind.
pub(crate) struct Hosted {
    pub account: Account,
    /// of a run over captures: records that came out after the last window, by worker
    pub records: Vec<Kept>,
    /// what the only worker's queue had
    pub sequencer: Option<Sequencer>,
}

/// [`serve`], and runs over captures: then there is an `ingress`, and each worker has one queue, a `Lane`.
pub(crate) fn host(
    mut serve: Serve,
    ingress: Option<Arc<Ingress>>,
    stop: &AtomicBool,
    drive: Drive<'_>,
) -> Result<Hosted, ModuleError> {
    let count = serve.workers.len();
    resumed(&mut serve);
    let shared = Arc::new(Shared::new(&mut serve, ingress));
    let ended_before = await_first(&mut serve, &shared, stop);
    let common = chain::common(&serve.chain, count)?;
    let mut workers = Vec::new();
    for (number, queues) in std::mem::take(&mut serve.workers).into_iter().enumerate() {
        let _there = Stay::near(serve.cpus.get(number).copied());
        workers.push(worker(&serve, &common, number, count, queues, &shared)?);
    }
    let rate = Rate::start();
    let deadline = serve.time.and_then(|t| Instant::now().checked_add(t));
    let mut ended = match drive {
        Drive::Work(observe) => {
            for worker in &mut workers {
                worker.work(stop, deadline, observe);
            }
            workers.into_iter().map(Some).collect()
        }
        Drive::Watch(observe) => {
            let running = AtomicUsize::new(count);
            threads(
                workers,
                &serve.cpus,
                &running,
                &shared.failed,
                (stop, deadline),
                || {
                    watch(&running, &shared, observe);
                },
            )
        }
        Drive::Feed(feed) => {
            // Whoever feeds them ends them.
            let (running, never) = (AtomicUsize::new(count), AtomicBool::new(false));
            threads(
                workers,
                &serve.cpus,
                &running,
                &shared.failed,
                (&never, None),
                || {
                    feed(deadline);
                },
            )
        }
    };
    let seconds = rate.elapsed().as_secs_f64();
    let tick = rate.ns_per_tick();
    let mut account = shared.account(tick, seconds);
    let ordered = ended_before || ended.iter().flatten().any(|w| w.ordered);
    account.interrupted = stop.load(Ordering::Relaxed) || ordered;
    // What was taken out of the chain may still be writing what it found.
    let patience = Instant::now() + LEAVE;
    while shared.lives.leaving() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(2));
    }
    report::complete(&mut account, &shared, &mut ended, &serve, tick);
    if let Some(job) = serve.at_end.take() {
        report::finally(job, &mut ended, &account);
    }
    let mut hosted = Hosted {
        account,
        records: Vec::new(),
        sequencer: None,
    };
    for served in ended.iter_mut().flatten().flat_map(|w| &mut w.queues) {
        if let Some(lane) = served.queue.lane() {
            let (mut records, sequencer) = lane.end();
            hosted.records.append(&mut records);
            hosted.sequencer = hosted.sequencer.or(sequencer);
        }
    }
    // Queues go before what holds their ports.
    drop(ended);
    serve.holds.clear();
    Ok(hosted)
}

/// Lets each worker work on a thread of its own while this one does something else; gives back those that lived.
fn threads(
    workers: Vec<Worker>,
    cpus: &[usize],
    running: &AtomicUsize,
    failed: &AtomicBool,
    (stop, deadline): (&AtomicBool, Option<Instant>),
    meanwhile: impl FnOnce(),
) -> Vec<Option<Worker>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .map(|mut worker| {
                let cpu = cpus.get(worker.number).copied();
                scope.spawn(move || {
                    let _guard = Leaves(running, failed);
                    if let Some(cpu) = cpu {
                        pin(cpu);
                    }
                    worker.work(stop, deadline, &mut |_| {});
                    worker
                })
            })
            .collect();
        meanwhile();
        threads.into_iter().map(|t| t.join().ok()).collect()
    })
}

/// Calls the observer now and then until no worker is left, and once then.
fn watch(running: &AtomicUsize, shared: &Shared, observe: &mut dyn FnMut(&Shared)) {
    let mut next = Instant::now() + OBSERVE;
    while running.load(Ordering::Acquire) > 0 {
        // Short, so that a run that ends at once is not held up.
        std::thread::sleep(Duration::from_millis(2));
        if Instant::now() >= next {
            observe(shared);
            next += OBSERVE;
        }
    }
    // Once more: what follows, such as writing state, may take long.
    observe(shared);
}

/// Waits for the first packet of a pipe, whose time the state begins with. Requests are answered all the same, without
/// a state; true when one of them ends the run.
fn await_first(serve: &mut Serve, shared: &Shared, stop: &AtomicBool) -> bool {
    let mut ordered = false;
    let deadline = serve.time.and_then(|t| Instant::now().checked_add(t));
    for queue in serve.workers.iter_mut().flatten() {
        while !queue.ready(AWAIT) {
            let mut over = stop.load(Ordering::Relaxed);
            over |= deadline.is_some_and(|deadline| Instant::now() >= deadline);
            for job in serve.mailboxes.iter().flat_map(|m| m.take()) {
                let account = || shared.account(1.0, 0.0);
                let mut desk = Desk::stateless(0, &account);
                job(&mut desk);
                ordered |= desk.order.is_some();
            }
            if over || ordered {
                queue.close();
            }
        }
    }
    ordered
}

/// Counts a thread as ended, also when it panics; then the others drain and end too.
struct Leaves<'a>(&'a AtomicUsize, &'a AtomicBool);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.1.store(true, Ordering::Relaxed);
        }
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// What takes up all of its state does not run `ON_START` when it is made, but where that may complete entries that are named.
fn resumed(serve: &mut Serve) {
    let part = serve.keep.as_ref().and_then(|keep| keep.begin.first());
    let Some(part) = part else { return };
    for (link, part) in serve.chain.iter_mut().zip(&part.stages) {
        if let Code::Module(code) = &mut link.code {
            code.config.resumed = part.whole && code.config.entries.is_empty();
        }
    }
}

fn worker(
    serve: &Serve,
    common: &[Option<Arc<module::Shared>>],
    number: usize,
    count: usize,
    queues: Vec<Box<dyn Queue>>,
    shared: &Arc<Shared>,
) -> Result<Worker, ModuleError> {
    let stamps = queues.iter().filter_map(|q| q.next_stamp());
    let start = stamps.min().unwrap_or_else(now);
    // What a packet leads to on a slow path comes before the next packet of a capture.
    let slow = serve.chain.iter().any(|link| link.slow.is_some());
    let burst = match slow && queues.iter().any(|q| q.keeps_time()) {
        true => 1,
        false => serve.burst.clamp(1, MAX_BURST),
    };
    let topology = serve
        .topology
        .clone()
        .unwrap_or_else(|| match serve.chain.len() {
            0 | 1 => Topology::alone(serve.ports.len()),
            several => Topology::line(several),
        });
    let mut worker = Worker {
        number,
        workers: count,
        shared: shared.clone(),
        chain: Chain::new(
            &serve.chain,
            &shared.lives.present(),
            &topology,
            common,
            number,
            start,
        )?,
        delivery: Delivery::new(queues.len()),
        made: Made::new(shared),
        queues: queues
            .into_iter()
            .map(|queue| Served {
                queue,
                failed: false,
            })
            .collect(),
        wiring: Wiring {
            of_port: serve.of_port.clone(),
            pass: serve.pass,
        },
        burst,
        limit: serve.packets,
        clock: start,
        frames: Vec::with_capacity(burst),
        back: Vec::with_capacity(burst),
        descriptors: Vec::with_capacity(burst),
        received: 0,
        each: Histogram::default(),
        failures: Vec::new(),
        busy: serve.busy,
        mailbox: serve.mailboxes.get(number).cloned(),
        next_tables: Instant::now(),
        seen: pressure::Seen::default(),
        homes: serve.chain.first().and_then(chain::Link::homes),
        entries: Entries::new(&shared.owners, number, count),
        rate: Rate::start(),
        ordered: false,
        awake: None,
        sequenced: shared.sequenced(),
        keep: serve.keep.clone(),
        group: serve.chain.first().and_then(|l| l.replicas().cloned()),
        copier: (serve.moves.as_ref())
            .and_then(|m| Some(Copier::new(m.copies.as_ref()?, m, number))),
        mover: serve.moves.as_ref().map(|m| moving::Mover::new(m, number)),
        peers: (serve.moves.as_ref()).is_some_and(|m| m.classes.elsewhere().is_some()),
    };
    if worker.queues.iter().any(|q| q.queue.keeps_time()) {
        let slow = worker.chain.stages.iter_mut();
        slow.filter_map(|s| s.slow.as_mut())
            .for_each(|slow| slow.at_once());
    }
    if let Some(part) = serve.keep.as_ref().and_then(|k| k.begin.get(number)) {
        worker.resume(part, &serve.chain, start)?;
    }
    Ok(worker)
}

#[cfg(test)]
#[allow(unsafe_code, reason = "a queue of the tests' own")]
mod tests;
#[cfg(test)]
#[allow(unsafe_code, reason = "an element of the tests' own")]
mod tests_made;
#[cfg(test)]
mod tests_slow;
