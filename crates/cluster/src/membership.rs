//! A node that runs: the state machine, driven by threads with a store, a machine and peers.
//!
//! One thread keeps the lease, so that no table that takes long to write ends it; one asks everything else; one watches; one hands over. The state
//! machine's lock is held while what it decided is done to the machine, so a bucket is never taken between a decision and its act.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::log::Entry;
use crate::machine::{HandOver, Machine, OTHER, Peers, Place, Refused};
use crate::node::{Action, Config, Event, Node, Outcome};
use crate::standing::Standing;
use crate::store::{Reply, Request};
use crate::table::{Node as Peer, Table};
use crate::times::SECOND;
use crate::vouch::{Answer, Ask};

/// What a cluster is agreed on in. Calls block for a bounded time.
pub trait Store: Send + Sync {
    /// Does what is asked; [`Reply::Failed`] where the outcome is unknown.
    fn perform(&self, request: &Request) -> Reply;

    /// Calls `changed` when something may have changed, until that says false, or for a bounded time; false: it could not be watched. A hint: what is
    /// missed is found by the next read.
    fn watch(&self, changed: &mut dyn FnMut() -> bool) -> bool;
}

/// Now, ns of the monotonic clock, by which [`Standing`] is judged.
#[must_use]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    part(time.tv_sec)
        .saturating_mul(SECOND)
        .saturating_add(part(time.tv_nsec))
}

/// What a node runs with.
pub struct With {
    /// its name, its address, its buckets
    pub config: Config,
    /// where it agrees with others
    pub store: Arc<dyn Store>,
    /// its function
    pub machine: Arc<dyn Machine>,
    /// other nodes
    pub peers: Arc<dyn Peers>,
    /// what a data plane reads that is there already; none: it is made when the table lists this node
    pub standing: Option<Arc<Standing>>,
    /// lines of JSON, one an event
    pub log: Option<Box<dyn Write + Send>>,
    /// words for a person
    pub say: Box<dyn Fn(&str) + Send + Sync>,
}

struct Shared {
    name: String,
    node: Mutex<Node>,
    events: Mutex<Sender<Event>>,
    /// of the data plane, where it was there before
    given: Option<Arc<Standing>>,
    /// once the table lists this node
    standing: OnceLock<Arc<Standing>>,
    until: AtomicU64,
    machine: Arc<dyn Machine>,
    peers: Arc<dyn Peers>,
    log: Mutex<Option<Box<dyn Write + Send>>>,
    say: Box<dyn Fn(&str) + Send + Sync>,
    /// why it ended, and that it did
    ended: Mutex<Option<Result<(), String>>>,
    changed: Condvar,
    over: AtomicBool,
    /// what the standing had seen when the last read began
    seen: AtomicU64,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn send(&self, event: Event) {
        // Nobody listens any more where the node has ended.
        let _ = lock(&self.events).send(event);
    }

    fn write(&self, entry: &Entry) {
        let mut log = lock(&self.log);
        if let Some(to) = log.as_mut()
            && let Ok(line) = serde_json::to_string(entry)
            && writeln!(to, "{line}").is_err()
        {
            *log = None;
            (self.say)("the log of the cluster cannot be written any more");
        }
    }

    fn end(&self, how: Result<(), String>) {
        if let Some(standing) = self.standing.get() {
            standing.set_until(0);
        }
        self.over.store(true, Ordering::Release);
        lock(&self.ended).get_or_insert(how);
        self.changed.notify_all();
    }

    fn publish(&self, table: Table) {
        if let Some(me) = table.named(&self.name) {
            let made = || {
                let empty = || Arc::new(Standing::new(me, Table::empty(table.owners.len() as u32)));
                let standing = self.given.clone().unwrap_or_else(empty);
                standing.set_me(me);
                standing
            };
            let standing = self.standing.get_or_init(made);
            standing.set_table(table);
            standing.set_until(self.until.load(Ordering::Acquire));
            let _ended = lock(&self.ended);
            self.changed.notify_all();
        }
    }
}

/// Where actions of the state machine are done.
struct Hands {
    keep: Sender<(u64, Request)>,
    other: Sender<(u64, Request)>,
    moves: Sender<(u64, u64, Peer, Vec<u32>)>,
}

/// A node of a cluster. It leaves when it is dropped without [`Membership::leave`] only by the end of its lease.
pub struct Membership {
    shared: Arc<Shared>,
}

/// Why a node did not join.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JoinError {
    /// It was refused, or cannot go on.
    #[error("{0}")]
    Ended(String),
    /// The table does not list it yet.
    #[error(
        "the cluster has not taken node '{name}' in within {seconds} s; `millrace cluster check` says what is missing"
    )]
    Late {
        /// the node
        name: String,
        /// how long it waited
        seconds: u64,
    },
}

impl Membership {
    /// Joins, and returns when the table lists this node, after `patience` at most.
    ///
    /// # Errors
    /// It has not joined; it goes on trying in the second case until this value would have been dropped, so the process should end.
    pub fn start(with: With, patience: Duration) -> Result<Self, JoinError> {
        let (events, inbox) = channel();
        let name = with.config.name.clone();
        let pause = Duration::from_nanos(with.config.times.beat() / 4);
        let shared = Arc::new(Shared {
            name: name.clone(),
            node: Mutex::new(Node::new(with.config)),
            events: Mutex::new(events),
            given: with.standing,
            standing: OnceLock::new(),
            until: AtomicU64::new(0),
            machine: with.machine,
            peers: with.peers,
            log: Mutex::new(with.log),
            say: with.say,
            ended: Mutex::new(None),
            changed: Condvar::new(),
            over: AtomicBool::new(false),
            seen: AtomicU64::new(0),
        });
        let hands = Hands {
            keep: asker(&shared, &with.store),
            other: asker(&shared, &with.store),
            moves: mover(&shared),
        };
        watcher(&shared, with.store);
        let main = shared.clone();
        thread::spawn(move || attend(&main, &hands, &inbox, pause));
        let membership = Self { shared };
        let end = Instant::now() + patience;
        let mut ended = lock(&membership.shared.ended);
        loop {
            if let Some(how) = &*ended {
                let why = how.clone().err().unwrap_or_default();
                return Err(JoinError::Ended(why));
            }
            if membership.shared.standing.get().is_some() {
                drop(ended);
                return Ok(membership);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                membership.shared.over.store(true, Ordering::Release);
                return Err(JoinError::Late {
                    name,
                    seconds: patience.as_secs(),
                });
            }
            let waited = membership.shared.changed.wait_timeout(ended, left);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What the data plane reads.
    #[must_use]
    pub fn standing(&self) -> Arc<Standing> {
        let empty = || Arc::new(Standing::new(crate::NodeId(u16::MAX), Table::empty(1)));
        self.shared.standing.get().cloned().unwrap_or_else(empty)
    }

    /// A peer hands a bucket over: puts it in.
    ///
    /// # Errors
    /// Why not, for the peer.
    pub fn take(&self, what: &HandOver) -> Result<(), Refused> {
        let shared = &self.shared;
        if what.fingerprint != shared.machine.fingerprint() {
            return Err(Refused { why: OTHER.into() });
        }
        let mut node = lock(&shared.node);
        let (bucket, version) = (what.bucket, what.version);
        node.may_take(bucket, version, now())
            .map_err(|why| Refused { why })?;
        if node.has_entries(bucket) {
            // An earlier try, whose answer was lost.
            forget(&*shared.machine, bucket);
        }
        shared.machine.accept(what)?;
        node.has_taken(bucket, version, now());
        drop(node);
        self.changed();
        Ok(())
    }

    /// Whether a bucket may come under a version of the table, before its entries are sent.
    ///
    /// # Errors
    /// Why not, for the peer.
    pub fn may(&self, bucket: u32, version: u64) -> Result<(), Refused> {
        let may = lock(&self.shared.node).may_take(bucket, version, now());
        may.map_err(|why| Refused { why })
    }

    /// A peer asks this node to vouch.
    #[must_use]
    pub fn vouch(&self, ask: &Ask) -> Answer {
        lock(&self.shared.node).vouch(ask, now())
    }

    /// A peer is known to have a newer table: reads it soon.
    pub fn changed(&self) {
        self.shared.send(Event::Changed);
    }

    /// A line for the node's log, of the data plane.
    pub fn write(&self, entry: &Entry) {
        self.shared.write(entry);
    }

    /// Why the node cannot go on, if it cannot.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let ended = lock(&self.shared.ended);
        ended.clone().and_then(Result::err)
    }

    /// Leaves: this node accepts nothing any more, and its buckets go to others at once, without state. Drain it before to keep the state. Waits
    /// `patience` at most; past that, the lease's end does the same.
    pub fn leave(&self, patience: Duration) {
        self.shared.send(Event::Leave);
        let end = Instant::now() + patience;
        let mut ended = lock(&self.shared.ended);
        while ended.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(ended, left);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(ended);
        self.shared.end(Ok(()));
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.shared.end(Ok(()));
    }
}

/// Takes a bucket's entries out and throws them away.
fn forget(machine: &dyn Machine, bucket: u32) {
    // What cannot be given is not there.
    let _ = machine.give(bucket);
    machine.settle(bucket, Place::Away, None);
}

fn attend(shared: &Arc<Shared>, hands: &Hands, inbox: &Receiver<Event>, pause: Duration) {
    let mut event = Event::Tick;
    while !shared.over.load(Ordering::Acquire) {
        if let Event::Reply(_, Reply::Viewed(view)) = &event
            && let (Some(standing), Some((table, _))) = (shared.standing.get(), &view.table)
        {
            standing.disprove(shared.seen.load(Ordering::Acquire), table.version);
        }
        let mut node = lock(&shared.node);
        let actions = node.step(event, now());
        for action in actions {
            perform(shared, hands, action);
        }
        drop(node);
        if shared.standing.get().is_some_and(|s| s.stale()) {
            shared.send(Event::Changed);
        }
        event = match inbox.recv_timeout(pause) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => Event::Tick,
            Err(RecvTimeoutError::Disconnected) => return,
        };
    }
}

fn perform(shared: &Arc<Shared>, hands: &Hands, action: Action) {
    match action {
        Action::Ask(id, request) => {
            if request == Request::Read
                && let Some(standing) = shared.standing.get()
            {
                shared.seen.store(standing.seen(), Ordering::Release);
            }
            let keeps = matches!(request, Request::Keep { .. });
            let to = if keeps { &hands.keep } else { &hands.other };
            let _ = to.send((id, request));
        }
        Action::Publish(table) => shared.publish(table),
        Action::Until(until) => {
            shared.until.store(until, Ordering::Release);
            if let Some(standing) = shared.standing.get() {
                standing.set_until(until);
            }
        }
        Action::Move {
            id,
            version,
            to,
            buckets,
            soon,
        } => {
            shared.machine.foresee(&soon);
            let _ = hands.moves.send((id, version, to, buckets));
        }
        Action::Settle(bucket, place, back) => {
            shared.machine.settle(bucket, place, back.as_deref());
        }
        Action::Inherit(bucket, from, life) => shared.machine.inherit(bucket, &from, life),
        Action::Forget(bucket) => forget(&*shared.machine, bucket),
        Action::Vouch(id, to, ask) => {
            let shared = shared.clone();
            // One a peer: a peer that does not answer takes no other's time. Rounds are a beat apart and calls are bounded, so these are few.
            thread::spawn(move || {
                let answer = shared.peers.vouch(&to, &ask).unwrap_or(Answer {
                    life: 0,
                    version: 0,
                    refused: Some("it does not answer".into()),
                });
                shared.send(Event::Vouched(id, to.name, answer));
            });
        }
        Action::Log(entry) => shared.write(&entry),
        Action::Say(words) => (shared.say)(&words),
        Action::Stop(why) => shared.end(Err(why)),
        Action::Left => shared.end(Ok(())),
    }
}

fn asker(shared: &Arc<Shared>, store: &Arc<dyn Store>) -> Sender<(u64, Request)> {
    let (to, requests) = channel::<(u64, Request)>();
    let (shared, store) = (shared.clone(), store.clone());
    thread::spawn(move || {
        while let Ok((id, request)) = requests.recv() {
            let reply = store.perform(&request);
            shared.send(Event::Reply(id, reply));
        }
    });
    to
}

fn watcher(shared: &Arc<Shared>, store: Arc<dyn Store>) {
    let shared = shared.clone();
    thread::spawn(move || {
        while !shared.over.load(Ordering::Acquire) {
            let watched = store.watch(&mut || {
                shared.send(Event::Changed);
                !shared.over.load(Ordering::Acquire)
            });
            if !watched {
                thread::sleep(Duration::from_millis(100));
            }
        }
    });
}

fn mover(shared: &Arc<Shared>) -> Sender<(u64, u64, Peer, Vec<u32>)> {
    let (to, moves) = channel::<(u64, u64, Peer, Vec<u32>)>();
    let shared = shared.clone();
    thread::spawn(move || {
        while let Ok((id, version, to, buckets)) = moves.recv() {
            let hand = |bucket: u32| {
                let entries = match shared.machine.give(bucket) {
                    Ok(entries) => entries,
                    Err(refused) => return Outcome::Kept(refused.why),
                };
                let what = HandOver {
                    bucket,
                    version,
                    fingerprint: shared.machine.fingerprint(),
                    entries,
                };
                match shared.peers.hand(&to, &what) {
                    Ok(()) => Outcome::Handed(what.entries),
                    Err(refused) => Outcome::Refused(what.entries, refused.why),
                }
            };
            let outcomes = buckets.into_iter().map(|b| (b, hand(b))).collect();
            shared.send(Event::Moved(id, outcomes));
        }
    });
    to
}
