//! Copies of buckets' state at other machines: this machine's at its standbys, and those that it keeps as others' standby.
//!
//! The table names each bucket's standby (`millrace_cluster::Table::standbys`). This machine keeps a connection to each node that is one for some
//! bucket of its own, over which workers tell rows (`millrace_dataplane::copies`): a stream as that of a hand-over, signed frame by frame
//! with the cluster's secret, each acknowledged once it is filed. Rows are of one version of the function: where another one takes its place, on either
//! machine, connections end, and begin anew as soon as both run the same. A connection that ends is made again, and a copy over it begins anew. Each has a queue
//! of its own: one whose machine takes little is told less, and one whose machine takes nothing for [`crate::STEP`] ends. What others tell is kept by
//! node in a [`Mirror`] until the table gives this machine a bucket of it.

mod receiver;
mod sender;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millrace_cluster::{Standing, Table};
use millrace_dataplane::classes::away::CopyCounts;
use millrace_dataplane::copies::{Content, Copies, ELSEWHERE, Following, Mirror, PERIOD};
use millrace_dataplane::module::Stamped;

use crate::running::Versions;
use crate::{Hands, Link, Secret, Security};
use sender::Connection;

/// How often is looked whether connections are those that the table asks for.
const LOOK: Duration = Duration::from_millis(20);
/// How long after a connection failed it is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// The same of one that took nothing while its queue filled: what it would be told first is all that there is.
const REST: Duration = Duration::from_secs(10);
/// How long the end of a run waits for the last rows' acknowledgements.
const LAST: Duration = Duration::from_millis(500);
/// How long what a dead node told is kept where the table asks for none of it.
const KEPT: Duration = Duration::from_secs(60);

/// What is known of copies so far.
#[derive(Default)]
pub(crate) struct Counters {
    rows: AtomicU64,
    bytes: AtomicU64,
    behind: AtomicU64,
    deferred: AtomicU64,
    delay: AtomicU64,
    begun: AtomicU64,
    slow: AtomicU64,
    filed: AtomicU64,
    entries: AtomicU64,
    full: AtomicU64,
    refused: AtomicU64,
    inherited: AtomicU64,
    taken: AtomicU64,
    lost: AtomicU64,
    partial: AtomicU64,
}

impl Counters {
    pub fn seen(&self) -> CopyCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CopyCounts {
            rows: load(&self.rows),
            bytes: load(&self.bytes),
            behind: load(&self.behind),
            deferred: load(&self.deferred),
            delay_ns: load(&self.delay),
            begun: load(&self.begun),
            slow: load(&self.slow),
            filed: load(&self.filed),
            entries: load(&self.entries),
            full: load(&self.full),
            refused: load(&self.refused),
            inherited: load(&self.inherited),
            inherited_entries: load(&self.taken),
            lost: load(&self.lost),
            partial: load(&self.partial),
        }
    }
}

/// Adds to a counter.
fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// The version of the function of which there are copies.
struct Version {
    /// how many ran before it
    generation: u64,
    fingerprint: [u8; 32],
    content: Content,
    /// it notes what changes
    copied: bool,
}

/// What one node tells.
struct Kept {
    life: u64,
    /// of the version of the function that it is of
    generation: u64,
    mirror: Arc<Mutex<Mirror>>,
    /// when it said something last, ns since the epoch: rows, or that there are none
    heard: Arc<AtomicU64>,
    /// when its stream ended, if it has, and the clock then, ns since the epoch
    ended: Option<(Instant, u64)>,
    /// it was said that its buckets go on here
    said: bool,
}

/// What a machine has of another one's bucket.
pub(crate) struct Inherited {
    /// entries, the one that was refreshed last behind the others
    pub entries: Vec<(usize, Stamped)>,
}

/// What workers follow, as it was seen last: the table's version, the function's, connections, and how often each bucket has come here.
type Seen = (u64, u64, Vec<u32>, Vec<u32>);

/// Says something to whoever runs this machine.
type Say = dyn Fn(&str) + Send + Sync;

/// This machine's part in copies.
pub struct Standby {
    name: String,
    secret: Secret,
    hands: Hands,
    standing: Arc<Standing>,
    /// how many buckets there are
    buckets: u32,
    /// the function as it was seen last, and what says which one runs by now
    version: Mutex<Arc<Version>>,
    versions: OnceLock<Arc<Versions>>,
    /// of the version that was seen last
    generation: AtomicU64,
    counts: Arc<Counters>,
    say: OnceLock<Box<Say>>,
    // At others.
    step: AtomicU64,
    following: RwLock<Arc<Following>>,
    arrivals: Mutex<Vec<u32>>,
    connections: RwLock<Vec<Arc<Connection>>>,
    numbers: AtomicU32,
    /// when a node may be tried again
    failed: Mutex<BTreeMap<String, Instant>>,
    // Of others.
    kept: Mutex<BTreeMap<String, Kept>>,
    streams: AtomicU64,
    stop: AtomicBool,
    /// it was said that there is no copy of the version of the function that runs
    said: AtomicBool,
}

/// A [`Standby`] at work, until this is dropped.
pub struct Keeping {
    standby: Arc<Standby>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panicking thread has left is as whole as any.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Standby {
    /// Of the node of this name, whose function has this fingerprint.
    #[must_use]
    pub fn new(
        (name, secret, security): (&str, &Secret, &Security),
        standing: &Arc<Standing>,
        fingerprint: [u8; 32],
        content: Content,
        link: &Arc<Link>,
    ) -> Arc<Self> {
        let counts = Arc::<Counters>::default();
        link.copies(&counts);
        Arc::new(Self {
            name: name.to_owned(),
            secret: secret.clone(),
            hands: Hands::new(name, secret, security, link),
            standing: standing.clone(),
            arrivals: Mutex::new(vec![0; content.buckets as usize]),
            buckets: content.buckets,
            version: Mutex::new(Arc::new(Version {
                generation: 0,
                fingerprint,
                content,
                copied: true,
            })),
            versions: OnceLock::new(),
            generation: AtomicU64::new(0),
            counts,
            say: OnceLock::new(),
            step: AtomicU64::new(1),
            following: RwLock::default(),
            connections: RwLock::default(),
            numbers: AtomicU32::new(1),
            failed: Mutex::default(),
            kept: Mutex::default(),
            streams: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            said: AtomicBool::new(false),
        })
    }

    /// Copies are of the version of the function that runs, as these say.
    pub(crate) fn watch(&self, versions: &Arc<Versions>) {
        let _ = self.versions.set(versions.clone());
    }

    /// The version that runs now.
    fn now(&self) -> Arc<Version> {
        let mut version = lock(&self.version);
        let runs = self.versions.get().map(|versions| versions.now());
        if let Some(runs) = runs.filter(|runs| runs.generation != version.generation) {
            let content = Content {
                module: runs.module.clone(),
                contents: runs.contents.clone(),
                ..version.content.clone()
            };
            let unnoted = content.unnoted().map(str::to_owned);
            if let Some((object, say)) = unnoted.as_ref().zip(self.say.get()) {
                say(&format!(
                    "the function that runs now has no copy elsewhere: it is built so that it does not note what changes of {object}; give its source rather than what was built of it"
                ));
            }
            *version = Arc::new(Version {
                generation: runs.generation,
                fingerprint: runs.fingerprint,
                copied: unnoted.is_none(),
                content,
            });
            self.generation.store(runs.generation, Ordering::Release);
        }
        version.clone()
    }

    /// Connects to this machine's standbys from now on, as the table names them; `say` hears whose buckets go on here.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(
        self: &Arc<Self>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<Keeping> {
        let _ = self.say.set(Box::new(say));
        let own = self.clone();
        let thread = std::thread::Builder::new().name("standby".to_owned());
        let thread = thread.spawn(move || {
            let mut seen = None;
            while !own.stop.load(Ordering::Acquire) {
                own.look(&mut seen);
                std::thread::park_timeout(LOOK);
            }
        })?;
        Ok(Keeping {
            standby: self.clone(),
            thread: Some(thread),
        })
    }

    /// A bucket has come to this machine: its copy begins anew.
    pub(crate) fn arrived(&self, bucket: u32) {
        if let Some(arrivals) = lock(&self.arrivals).get_mut(bucket as usize) {
            *arrivals = arrivals.wrapping_add(1);
        }
    }

    /// What was told of a bucket by a node in its life, of the version of the function that runs. Nothing more is taken from it then.
    pub(crate) fn inherit(
        &self,
        bucket: u32,
        (from, life): (&str, u64),
        generation: u64,
    ) -> Option<Inherited> {
        let mut kept = lock(&self.kept);
        let kept = { kept.get_mut(from) }.filter(|k| k.life == life && k.generation == generation);
        let Some(kept) = kept else {
            self.lost(from, generation);
            return None;
        };
        let mut mirror = lock(&kept.mirror);
        let (entries, whole) = (mirror.entries(), mirror.is_whole());
        if !std::mem::replace(&mut kept.said, true) {
            let ended = kept
                .ended
                .map_or_else(millrace_dataplane::clock::now, |(_, at)| at);
            let heard = kept.heard.load(Ordering::Relaxed);
            // What its workers did in the period before that they had not told.
            let old = Duration::from_nanos(ended.saturating_sub(heard)) + PERIOD;
            let old = old.as_millis();
            let part = match (whole, mirror.full()) {
                (false, _) => {
                    "; the copy was not whole yet, so that connections of it may be lost".to_owned()
                }
                (true, 0) => String::new(),
                (true, full) => format!("; {full} rows found no room here"),
            };
            if let Some(say) = self.say.get() {
                say(&format!(
                    "node {from} is gone: its buckets go on here with {entries} entries; what it did in its last {old} ms may be missing{part}"
                ));
            }
            add(&self.counts.full, mirror.full());
        }
        let entries = mirror.take(bucket);
        drop(mirror);
        add(&self.counts.inherited, 1);
        add(&self.counts.partial, u64::from(!whole));
        Some(Inherited { entries })
    }

    /// A bucket of another node goes on here without state.
    fn lost(&self, from: &str, generation: u64) {
        add(&self.counts.inherited, 1);
        add(&self.counts.partial, 1);
        if generation > 0
            && !self.said.swap(true, Ordering::Relaxed)
            && let Some(say) = self.say.get()
        {
            say(&format!(
                "node {from} is gone: its buckets go on here without their state, of which there is no copy since the function was replaced"
            ));
        }
    }

    /// Entries of a bucket of another node were put in, and so many were not.
    pub(crate) fn inherits(&self, entries: u64, lost: u64) {
        add(&self.counts.taken, entries);
        add(&self.counts.lost, lost);
    }

    /// Connections as the table asks for them, and what workers follow.
    fn look(self: &Arc<Self>, seen: &mut Option<Seen>) {
        let table = self.standing.table();
        let version = self.now();
        self.connect(&table, &version);
        let mut kept = lock(&self.kept);
        kept.retain(|name, kept| {
            if kept.generation != version.generation {
                // Entries of one version are none of another.
                return false;
            }
            let node = table.named(name).and_then(|id| table.node(id));
            let lives = node.is_some_and(|n| n.alive && n.life == kept.life);
            lives || kept.ended.is_none_or(|(at, _)| at.elapsed() < KEPT)
        });
        let entries = kept.values().map(|kept| lock(&kept.mirror).entries()).sum();
        self.counts.entries.store(entries, Ordering::Relaxed);
        drop(kept);
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let numbers: Vec<u32> = connections.iter().map(|c| c.number).collect();
        let arrivals = lock(&self.arrivals).clone();
        let now = (table.version, version.generation, numbers, arrivals);
        if seen.as_ref() == Some(&now) {
            return;
        }
        let me = self.standing.me();
        let to = (0..self.buckets).map(|bucket| {
            let owner = table.owner(bucket);
            if owner != Some(me) {
                // What another node goes on with in this one's place is not to be forgotten there.
                let left = table.inherited.get(bucket as usize).copied().flatten();
                let handed = owner.is_some() && left.is_none_or(|(from, _)| from != me);
                return if handed { ELSEWHERE } else { 0 };
            }
            let standby = table.standby(bucket).and_then(|id| table.node(id));
            let standby = standby.filter(|node| node.alive && node.name != self.name);
            let connection = standby.and_then(|n| connections.iter().find(|c| c.is_to(n)));
            connection.map_or(0, |c| c.number)
        });
        let following = Following {
            version: table.version,
            generation: version.generation,
            to: to.collect(),
            arrivals: now.3.clone(),
        };
        drop(connections);
        *self
            .following
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(following);
        *seen = Some(now);
        self.step.fetch_add(1, Ordering::Release);
    }

    /// Ends connections that the table does not ask for, and begins others.
    fn connect(self: &Arc<Self>, table: &Table, version: &Arc<Version>) {
        let me = self.standing.me();
        let mut wanted: Vec<_> = (0..self.buckets)
            .filter(|bucket| version.copied && table.owner(*bucket) == Some(me))
            .filter_map(|bucket| table.standby(bucket))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let nodes = wanted.iter().filter_map(|id| table.node(*id));
        let nodes: Vec<_> = nodes.filter(|n| n.alive && n.name != self.name).collect();
        let life = table.node(me).map_or(0, |n| n.life);
        let mut connections = self
            .connections
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut failed = lock(&self.failed);
        connections.retain(|c| {
            let same = c.version.generation == version.generation && c.life == life;
            let stays = !c.is_over() && same && nodes.iter().any(|n| c.is_to(n));
            if !stays {
                c.end();
                if c.was_slow() {
                    failed.insert(c.name.clone(), Instant::now() + REST);
                }
            }
            stays
        });
        for node in nodes {
            let now = Instant::now();
            let tried = failed.get(&node.name).is_some_and(|again| now < *again);
            if tried || connections.iter().any(|c| c.is_to(node)) {
                continue;
            }
            failed.insert(node.name.clone(), now + AGAIN);
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let connection = Arc::new(Connection::new(number, node, life, version));
            if connection.begin(self, table.version) {
                connections.push(connection);
            }
        }
    }
}

impl Copies for Standby {
    fn step(&self) -> u64 {
        self.step.load(Ordering::Acquire)
    }

    fn following(&self) -> Arc<Following> {
        let following = self
            .following
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        following.clone()
    }

    fn room(&self, to: &mut Vec<(u32, usize)>) {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        to.extend(
            connections
                .iter()
                .filter_map(|c| Some((c.number, c.room()?))),
        );
    }

    fn deferred(&self, changes: u64) {
        add(&self.counts.deferred, changes);
    }

    fn send(&self, connection: u32, bytes: Vec<u8>, rows: u64) {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = connections.iter().find(|c| c.number == connection) {
            add(&self.counts.rows, rows);
            add(&self.counts.bytes, bytes.len() as u64);
            add(&self.counts.behind, rows);
            to.push(bytes, rows, &self.counts);
        }
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.standby.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked connects to nobody any more.
            let _ = thread.join();
        }
        // What workers told last goes before this machine leaves.
        let until = Instant::now() + LAST;
        while self.standby.counts.behind.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let all = self.standby.connections.read();
        for connection in all.unwrap_or_else(PoisonError::into_inner).iter() {
            connection.end();
        }
    }
}
