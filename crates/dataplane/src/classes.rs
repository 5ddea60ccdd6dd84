//! Packet classes: parts of the traffic that move from one worker to another while packets come.
//!
//! An indirection table, as that of receive side scaling, leads from the hash of a packet's fields to its class, and
//! here a class leads to its worker. What has a state of its own for each class (a guest) is run by the worker that
//! has the class, and by no other, so a class moves by changing one number, at a moment at which nobody has any of its
//! packets:
//!
//! 1. each queue of each port holds what it receives of the class from now on, and says how much it had handed to
//!    the class's worker before;
//! 2. the queues of that worker say when all of that has been worked on. A worker is through with a burst when it asks
//!    for the next one, so its queues know;
//! 3. with the last of them the class has its new worker, and what was held goes there, in order, before what follows.
//!
//! Where the state of a function is divided, a class is a bucket of the indirection table ([`Buckets`]), and its entries move
//! with it ([`crate::worker`]). Then there is a step before 1, in which the worker looks for them, a few places after each burst,
//! while packets of the bucket go on; and two behind 2: that worker takes them out, and the other one puts them in. Where it has no room
//! for all of them it puts in none, they go back, and the bucket stays.
//!
//! Where a device's table can be changed, packets come to the new worker from then on, after a last step ([`table`]).
//!
//! Another key of the hash is a move of all classes at once: the queues receive nothing, so that packets wait in the device, until all entries
//! are where the new key leads.
//!
//! Packets that one queue received stay in order throughout, and so do those of a flow, which a device gives to one
//! queue. A step costs each queue one lock; without a move it is one load a burst.

pub mod away;
mod state;
pub mod successor;
pub mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use millrace_steer::Owners;
use millrace_steer::buckets::{Buckets, Drawn};

use crate::module::Stamped;
use away::{Elsewhere, Waiting};
pub use state::{Counts, Task};
use state::{Phase, State};
use table::{Indirection, Leaving, Turned};

/// How long a move may take: a worker asks for packets again after at most as long as a guest may keep a burst.
const MOST: Duration = Duration::from_secs(10);

/// The classes of a run, and which worker has each.
pub struct Classes {
    /// a port of the chain each, the last one for those behind it: their queues are classes
    owners: Vec<Owners>,
    /// classes are buckets of a function whose state moves with them
    buckets: Option<Mutex<Arc<dyn Buckets>>>,
    workers: usize,
    /// how many workers have classes, of those that there are: the first ones
    used: AtomicUsize,
    counts: state::Counters,
    /// by class: packets, as far as workers sample them
    loads: Vec<AtomicU64>,
    /// how many packets were looked at for that
    samples: AtomicU64,
    /// by class: its worker, or that it has none here ([`away`])
    worker: Vec<AtomicU32>,
    /// other machines, which have classes too
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// raised by each step of a move, so that queues look
    step: AtomicU64,
    inside: Mutex<Inside>,
    changed: Condvar,
    /// classes that will be taken out soon
    foreseen: Mutex<Arc<[u16]>>,
}

#[derive(Default)]
struct Inside {
    members: Vec<Member>,
    moving: Option<Moving>,
    /// of the move that ended last
    ended: Option<Result<Moved, MoveError>>,
    /// the run is about to end: nothing moves any more
    closed: bool,
    /// how many want that nothing moves for a while
    stills: usize,
    /// the function is another one than the one that the buckets are of
    changed: bool,
    /// versions of it
    versions: successor::Versions,
    /// how many want that no bucket is between machines for a while
    pauses: usize,
    /// the element whose buckets they are, by its number in the run
    of: u64,
    /// classes that wait for what is said of them
    waiting: BTreeMap<u16, Waiting>,
    /// entries of the class that was taken out last
    given: Vec<(usize, Stamped)>,
    /// the key is not the one that devices were told: their tables lead from other classes
    rotated: bool,
}

/// As long as it is there nothing moves.
pub struct Still<'a>(&'a Classes);

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.0.lock().stills -= 1;
    }
}

/// A queue of a port.
struct Member {
    port: usize,
    worker: usize,
    wake: Box<dyn Fn() + Send + Sync>,
    /// of its device
    table: Option<Arc<dyn Indirection>>,
}

struct Moving {
    what: What,
    /// packets are held since then
    began: Instant,
    /// by member: what it had handed to each worker that gives something up when it began to hold; none before
    marks: Vec<Option<Vec<u64>>>,
    /// by member, where it is one of a worker's that gives something up: it is through with all of that
    through: Vec<bool>,
    /// what has become of the entries
    state: State,
    /// the class has its new worker: queues to which the device does not bring it any more
    turned: Vec<Turned>,
    /// what the move was, then
    moved: Option<Moved>,
}

/// What moves.
enum What {
    /// a class
    One { class: u16, from: usize, to: usize },
    /// all, under another key
    All(Drawn),
    /// a class, out of a worker; it waits then
    Out { class: u16, from: usize },
    /// entries of a class that waits, into a worker
    In { class: u16, to: usize },
}

/// What a move was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// the class
    pub class: u16,
    /// the worker that had it
    pub from: usize,
    /// the worker that has it; none, which is a number beyond all of them, where it left or has not come yet
    pub to: usize,
    /// from the order to hold its packets until its new worker had it
    pub held: Duration,
    /// entries of state that went with it
    pub entries: u64,
}

/// Why a class was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// There is no such class.
    #[error("there is no class {class}: there are {count}, from 0")]
    NoClass {
        /// the one that was named
        class: usize,
        /// how many there are
        count: usize,
    },
    /// There is no such worker.
    #[error("there is no worker {worker}: there are {count}, from 0")]
    NoWorker {
        /// the one that was named
        worker: usize,
        /// how many there are
        count: usize,
    },
    /// Another class is under way.
    #[error("another class is being moved")]
    Busy,
    /// A worker did not come back for packets.
    #[error("a worker is busy for longer than a move may take; the class stays where it was")]
    Late,
    /// The run ends.
    #[error("the run is about to end; the class stays where it was")]
    Ends,
    /// The receiver has no room for its entries.
    #[error("the worker has no room for its entries; the class stays where it was")]
    Full,
    /// The state was saved, or changed from outside, before the other worker had its entries.
    #[error("the state of the function was asked for meanwhile; the class stays where it was")]
    Asked,
    /// The function was changed for another one.
    #[error(
        "the function was changed, and which entries the buckets of the new one have is not known; the class stays where it was"
    )]
    Changed,
    /// There is one key, and no other one.
    #[error("numbers that were leased under one key do not come home under another")]
    OneKey,
    /// The class is at no worker of this machine.
    #[error("the class is on another machine")]
    Gone,
    /// The class is here already.
    #[error("the class is on this machine already")]
    There,
    /// Machines have one key.
    #[error("all machines of a cluster have one key: it stays")]
    Cluster,
    /// More workers than there are, or none.
    #[error("there are {most} workers, of which 1 to {most} can have packets")]
    Workers {
        /// how many there are
        most: usize,
    },
}

/// What a queue is to do.
#[derive(Clone)]
pub struct Looked {
    /// the step that this is the answer to; 0, which is none: look again
    pub step: u64,
    /// the class whose packets it holds
    pub hold: Option<u16>,
    /// it receives nothing
    pub still: bool,
    /// its device brings a class elsewhere: it says when it has been empty since
    pub leaving: Option<Leaving>,
}

impl Classes {
    /// As many classes as `owners` lead to, dealt out to the workers in turn.
    #[must_use]
    pub fn new(owners: Vec<Owners>, classes: u16, workers: usize) -> Arc<Self> {
        let workers = workers.max(1);
        let worker = (0..u32::from(classes.max(1))).map(|class| class % workers as u32);
        let worker = worker.map(AtomicU32::new).collect();
        Arc::new(Self::with((owners, None), worker, workers))
    }

    fn with(
        (owners, buckets): (Vec<Owners>, Option<Arc<dyn Buckets>>),
        worker: Vec<AtomicU32>,
        workers: usize,
    ) -> Self {
        Self {
            owners,
            buckets: buckets.map(Mutex::new),
            workers,
            used: AtomicUsize::new(workers),
            counts: state::Counters::default(),
            samples: AtomicU64::new(0),
            loads: worker.iter().map(|_| AtomicU64::new(0)).collect(),
            worker,
            step: AtomicU64::new(1),
            elsewhere: None,
            inside: Mutex::default(),
            changed: Condvar::new(),
            foreseen: Mutex::default(),
        }
    }

    /// The buckets of a function that runs on several machines, at the workers that `table` says; none: the bucket is on another machine.
    #[must_use]
    pub fn of_machines(
        buckets: Arc<dyn Buckets>,
        table: &[Option<u32>],
        workers: usize,
        elsewhere: Arc<dyn Elsewhere>,
    ) -> Arc<Self> {
        let workers = workers.max(1);
        let last = workers as u32 - 1;
        let of = |w: &Option<u32>| AtomicU32::new(w.map_or(away::AWAY, |w| w.min(last)));
        let of = ((Vec::new(), Some(buckets)), table.iter().map(of).collect());
        Arc::new(Self {
            elsewhere: Some(elsewhere),
            ..Self::with(of.0, of.1, workers)
        })
    }

    /// Other machines, where they have classes too.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&Arc<dyn Elsewhere>> {
        self.elsewhere.as_ref()
    }

    /// The buckets of a function, at the workers that `table` says. Their entries move with them.
    #[must_use]
    pub fn of_buckets(buckets: Arc<dyn Buckets>, table: &[u32], workers: usize) -> Arc<Self> {
        let workers = workers.max(1);
        let last = workers as u32 - 1;
        let worker = table.iter().map(|w| AtomicU32::new((*w).min(last)));
        let of = (Vec::new(), Some(buckets));
        Arc::new(Self::with(of, worker.collect(), workers))
    }

    /// The buckets that classes are; none where they are no buckets. They change with the key, at a step.
    #[must_use]
    pub fn buckets(&self) -> Option<Arc<dyn Buckets>> {
        let buckets = self.buckets.as_ref()?.lock();
        Some(buckets.unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Notes that packets of a class came, as a worker samples them.
    #[inline]
    pub fn sampled(&self, class: usize, packets: u64) {
        if let Some(load) = self.loads.get(class) {
            load.fetch_add(packets, Ordering::Relaxed);
            self.samples.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many packets were looked at for [`Self::loads`].
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Packets of each class so far, as workers sample them.
    #[must_use]
    pub fn loads(&self) -> Vec<u64> {
        let load = |load: &AtomicU64| load.load(Ordering::Relaxed);
        self.loads.iter().map(load).collect()
    }

    /// How many workers there are, and how many of these have classes.
    #[must_use]
    pub fn workers(&self) -> (usize, usize) {
        (self.workers, self.used.load(Ordering::Relaxed))
    }

    /// What was moved so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts.seen()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.worker.len()
    }

    /// The class of a frame that came in at a port.
    #[inline]
    #[must_use]
    pub fn of(&self, port: u32, frame: &[u8]) -> u16 {
        let owners = self.owners.get(port as usize).or(self.owners.last());
        let class = owners.map_or(0, |owners| owners.owner(frame) as usize);
        class.min(self.worker.len().saturating_sub(1)) as u16
    }

    /// The worker that has a class.
    #[inline]
    #[must_use]
    pub fn worker(&self, class: u16) -> usize {
        let worker = self.worker.get(usize::from(class));
        // With the store of `pass`: who sees the new worker sees what the old one has done.
        worker.map_or(0, |worker| worker.load(Ordering::Acquire) as usize)
    }

    /// Moves a class to a worker, and waits until it is there. Packets of the class wait meanwhile, others do not.
    ///
    /// # Errors
    /// [`MoveError`]; then it stays where it was, and its packets go on there.
    pub fn assign(&self, class: usize, to: usize) -> Result<Moved, MoveError> {
        let (classes, workers) = (self.count(), self.workers);
        if class >= classes {
            let count = classes;
            return Err(MoveError::NoClass { class, count });
        }
        if to >= workers {
            let (worker, count) = (to, workers);
            return Err(MoveError::NoWorker { worker, count });
        }
        let class = class as u16;
        let mut inside = self.lock();
        inside.admits()?;
        // One that has ended is not over before whoever asked for it knows.
        if inside.moving.is_some() || inside.ended.is_some() {
            return Err(MoveError::Busy);
        }
        if !matches!(self.whose(class), away::Whose::Worker(_)) {
            return Err(MoveError::Gone);
        }
        let (from, began) = (self.worker(class), Instant::now());
        let any = inside.members.iter().any(|m| m.worker == from);
        if from == to || !any && self.buckets.is_none() {
            // Without a queue of the worker's there are no packets of it either.
            let held = Duration::ZERO;
            self.pass(class, to);
            return Ok(Moved {
                class,
                from,
                to,
                held,
                entries: 0,
            });
        }
        let state = match self.buckets {
            Some(_) => State::new(Phase::Looking, self.workers),
            None => State::new(Phase::Draining, self.workers),
        };
        inside.begin(What::One { class, from, to }, state);
        self.announce(&inside);
        self.ends(inside, began)
    }

    /// Whether the key of the hash can be another one, as one drawn from this.
    ///
    /// # Errors
    /// [`MoveError::OneKey`] or [`MoveError::Cluster`].
    pub fn rotates(&self, secret: [u8; 32]) -> Result<Drawn, MoveError> {
        if self.elsewhere.is_some() {
            return Err(MoveError::Cluster);
        }
        let buckets = self.buckets().ok_or(MoveError::OneKey)?;
        buckets.draw(secret).ok_or(MoveError::OneKey)
    }

    /// Draws another key of the hash, and waits until all entries are where it leads. All packets wait meanwhile, in the device.
    ///
    /// # Errors
    /// [`MoveError`]; then the key is the one that it was.
    pub fn rotate(&self, secret: [u8; 32]) -> Result<Moved, MoveError> {
        let drawn = self.rotates(secret)?;
        let mut inside = self.lock();
        inside.admits()?;
        if inside.moving.is_some() || inside.ended.is_some() {
            return Err(MoveError::Busy);
        }
        let began = Instant::now();
        inside.begin(What::All(drawn), State::new(Phase::Draining, self.workers));
        self.announce(&inside);
        self.ends(inside, began)
    }

    /// Waits for the end of the move under way.
    fn ends(&self, mut inside: MutexGuard<'_, Inside>, began: Instant) -> Result<Moved, MoveError> {
        loop {
            if let Some(ended) = inside.ended.take() {
                // Whoever waits for its turn.
                self.changed.notify_all();
                return ended;
            }
            let left = MOST.saturating_sub(began.elapsed());
            // Once a worker has taken entries out they are on their way.
            let out = inside.moving.as_ref().is_some_and(|m| m.state.is_out());
            if left.is_zero() && !out {
                self.end_with(&mut inside, MoveError::Late);
                continue;
            }
            let left = left.max(Duration::from_millis(10));
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// These classes will move soon, and no others: their workers look for the entries of all of them at once.
    pub fn foresee(&self, classes: impl IntoIterator<Item = u32>) {
        let classes = classes.into_iter().filter_map(|c| u16::try_from(c).ok());
        let mut classes: Vec<u16> = classes.collect();
        classes.sort_unstable();
        *self.lock_foreseen() = classes.into();
        self.announce(&self.lock());
    }

    /// What was foreseen last, in ascending order.
    #[must_use]
    pub fn foreseen(&self) -> Arc<[u16]> {
        self.lock_foreseen().clone()
    }

    fn lock_foreseen(&self) -> MutexGuard<'_, Arc<[u16]>> {
        self.foreseen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the first `count` workers have all classes. Those of others move to them, as few as give each its part.
    ///
    /// # Errors
    /// [`MoveError`] of the first class that stays where it was; what has moved before stays moved.
    pub fn cores(&self, count: usize) -> Result<u64, MoveError> {
        if count == 0 || count > self.workers {
            return Err(MoveError::Workers { most: self.workers });
        }
        self.used.store(count, Ordering::Relaxed);
        let mut moved = 0;
        let table = self.table();
        let here = |class: usize| table.get(class).is_some_and(|w| *w < self.workers);
        let own: Vec<usize> = (0..table.len()).filter(|class| here(*class)).collect();
        let workers: Vec<usize> = own.iter().filter_map(|c| table.get(*c).copied()).collect();
        let moves = state::spread(&workers, count);
        let soon = moves.iter().filter_map(|(at, _)| own.get(*at));
        self.foresee(soon.map(|class| *class as u32));
        for (at, to) in moves {
            let class = own.get(at).copied().unwrap_or(usize::MAX);
            self.assign(class, to)?;
            moved += 1;
        }
        Ok(moved)
    }

    /// The worker of each class.
    #[must_use]
    pub fn table(&self) -> Vec<usize> {
        let load = |worker: &AtomicU32| worker.load(Ordering::Acquire) as usize;
        self.worker.iter().map(load).collect()
    }

    /// Takes part, as worker `worker`'s queue of port `port`, whose device has this table: `wake` has it look soon. Its number here.
    pub fn join(
        &self,
        (port, worker): (usize, usize),
        table: Option<Arc<dyn Indirection>>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> usize {
        let mut inside = self.lock();
        inside.members.push(Member {
            port,
            worker,
            wake: Box::new(wake),
            table,
        });
        inside.members.len() - 1
    }

    /// Whether a queue that looked at this step is to look again.
    #[inline]
    #[must_use]
    pub fn has_changed(&self, step: u64) -> bool {
        self.step.load(Ordering::Acquire) != step
    }

    /// The step that is made now.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step.load(Ordering::Acquire)
    }

    /// A queue looks what it is to do, between two bursts: it holds nothing of what it received before, and its worker
    /// is through with all that it gave it. `handed` says how many packets it has handed to a worker so far, `taken`
    /// how many it was handed by one and has given out. It keeps packets of one class at a time: one that still has some
    /// of class `waiting` lets them go before it takes part in the move of another. `empty`: it holds nothing, and has seen its device's queue empty
    /// behind the change of the table that it looks out for.
    pub fn look(
        &self,
        member: usize,
        (waiting, empty): (Option<u16>, bool),
        handed: impl Fn(usize) -> u64,
        taken: impl Fn(usize) -> u64,
    ) -> Looked {
        let mut inside = self.lock();
        let Inside {
            members, moving, ..
        } = &mut *inside;
        let mut over = false;
        if let Some(moving) = moving.as_mut().filter(|m| m.state.phase == Phase::Settling) {
            let settles = moving.settles(members, member, empty.then_some(&handed), &taken);
            self.raise(members, |m| settles == Some(m.worker));
            if moving.turned.iter().all(|t| t.over) {
                let moved = moving.moved.ok_or(MoveError::Late);
                self.end(&mut inside, moved);
            }
            return self.looked_at(&inside, member);
        }
        if let Some(moving) = moving.as_mut().filter(|m| m.state.phase == Phase::Draining) {
            let other = |class: u16| moving.what.class() != Some(class);
            if waiting.is_some_and(other) {
                return Looked {
                    step: 0,
                    hold: None,
                    still: false,
                    leaving: None,
                };
            }
            let workers = self.workers;
            if let Some(mark @ None) = moving.marks.get_mut(member) {
                *mark = Some((0..workers).map(handed).collect());
                // A worker that gives something up may be through now.
                self.raise(members, |m| moving.what.gives(m.worker));
            }
            if moving.is_through(members, member, &taken) {
                let own = members.iter().zip(&moving.through);
                over = own
                    .filter(|(m, _)| moving.what.gives(m.worker))
                    .all(|(_, t)| *t);
            }
        }
        if over {
            self.drained(&mut inside);
        }
        self.looked_at(&inside, member)
    }

    fn looked_at(&self, inside: &Inside, member: usize) -> Looked {
        let moving = inside.moving.as_ref();
        let holds = moving.filter(|m| match m.state.phase {
            Phase::Looking => false,
            Phase::Settling => m.turned.iter().any(|t| t.to == member && !t.over),
            _ => true,
        });
        Looked {
            step: self.step.load(Ordering::Relaxed),
            hold: holds.and_then(|m| m.what.class()),
            still: holds.is_some_and(|m| m.what.class().is_none()),
            leaving: inside.leaving(member),
        }
    }

    /// Nobody has packets any more of what moves.
    fn drained(&self, inside: &mut Inside) {
        if self.buckets.is_some() {
            if let Some(moving) = &mut inside.moving {
                moving.state.enter(Phase::Taking);
            }
            self.announce(inside);
            return;
        }
        self.pass_on(inside);
    }

    /// What moves has its new worker, or its new key.
    fn pass_on(&self, inside: &mut Inside) {
        let Some(mut moving) = inside.moving.take() else {
            return;
        };
        let (held, entries) = (moving.began.elapsed(), moving.state.entries);
        let moved = match moving.what {
            What::One { class, from, to } => {
                self.pass(class, to);
                let moved = Moved {
                    class,
                    from,
                    to,
                    held,
                    entries,
                };
                if !inside.closed && !inside.rotated {
                    moving.turned = table::turn(&inside.members, class, to);
                }
                if !moving.turned.is_empty() {
                    moving.state.enter(Phase::Settling);
                    moving.moved = Some(moved);
                    inside.moving = Some(moving);
                    self.announce(inside);
                    return;
                }
                moved
            }
            What::Out { class, from } => {
                inside.given = moving.state.leaves();
                inside.waiting.insert(
                    class,
                    Waiting {
                        home: from,
                        there: false,
                    },
                );
                self.place(class, away::WAITS);
                Moved {
                    class,
                    from,
                    to: usize::MAX,
                    held,
                    entries,
                }
            }
            What::In { class, to } => {
                inside.waiting.insert(
                    class,
                    Waiting {
                        home: to,
                        there: true,
                    },
                );
                Moved {
                    class,
                    from: usize::MAX,
                    to,
                    held,
                    entries,
                }
            }
            What::All(drawn) => {
                if let Some(buckets) = &self.buckets {
                    *buckets.lock().unwrap_or_else(PoisonError::into_inner) = drawn.buckets;
                }
                inside.rotated = true;
                Moved {
                    class: 0,
                    from: 0,
                    to: 0,
                    held,
                    entries,
                }
            }
        };
        self.end(inside, Ok(moved));
    }

    /// Nothing moves as long as what this gives is there: somebody looks at the state of all workers, or changes it. A bucket that is on its way is
    /// called back first.
    #[must_use]
    pub fn still(&self) -> Still<'_> {
        let mut inside = self.lock();
        inside.stills += 1;
        while inside.moving.is_some() {
            drop(inside);
            if self.recall() {
                return Still(self);
            }
            std::thread::yield_now();
            inside = self.lock();
            // Workers that have ended do nothing for it any more.
            if inside.closed {
                break;
            }
        }
        drop(inside);
        Still(self)
    }

    /// Whether the buckets are those of the element with this number.
    #[must_use]
    pub fn are_of(&self, element: u64) -> bool {
        let inside = self.lock();
        !inside.changed && inside.of == element
    }

    /// Why nothing can move any more, however long one waits; none: it can.
    #[must_use]
    pub fn stays(&self) -> Option<MoveError> {
        self.lock().changed.then_some(MoveError::Changed)
    }

    /// The function of a worker is not the one that the buckets are of: nothing moves any more.
    pub fn changes(&self) {
        let mut inside = self.lock();
        inside.changed = true;
        if inside.moving.as_ref().is_some_and(|m| !m.state.is_out()) {
            self.end_with(&mut inside, MoveError::Changed);
        }
    }

    /// The run is about to end: a class that is under way stays where it was.
    pub fn close(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        // Entries that are out are put somewhere by the workers, which look until they have ended.
        if inside.moving.as_ref().is_some_and(|m| !m.state.is_out()) {
            self.end_with(&mut inside, MoveError::Ends);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // What a panicking thread has left is as whole as any: each step is one assignment.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, class: u16, to: usize) {
        self.place(class, to as u32);
    }

    /// Ends a move for a reason, unless the class has its new worker already.
    fn end_with(&self, inside: &mut Inside, why: MoveError) {
        let moved = inside.moving.as_ref().and_then(|m| m.moved);
        self.end(inside, moved.ok_or(why));
    }

    fn end(&self, inside: &mut Inside, ended: Result<Moved, MoveError>) {
        self.counts
            .ended(&ended, inside.moving.as_ref().map(|m| m.state.lost));
        inside.moving = None;
        inside.ended = Some(ended);
        self.announce(inside);
        self.changed.notify_all();
    }

    fn announce(&self, inside: &Inside) {
        self.raise(&inside.members, |_| true);
    }

    fn raise(&self, members: &[Member], whom: impl Fn(&Member) -> bool) {
        self.step.fetch_add(1, Ordering::Release);
        for member in members.iter().filter(|m| whom(m)) {
            (member.wake)();
        }
    }
}

impl Inside {
    /// Whether anything may begin to move.
    fn admits(&self) -> Result<(), MoveError> {
        match () {
            () if self.closed => Err(MoveError::Ends),
            () if self.changed => Err(MoveError::Changed),
            () if self.stills > 0 => Err(MoveError::Asked),
            () => Ok(()),
        }
    }
}

impl What {
    fn gives(&self, worker: usize) -> bool {
        match self {
            Self::One { from, .. } | Self::Out { from, .. } => *from == worker,
            Self::In { .. } => false,
            Self::All(_) => true,
        }
    }

    fn class(&self) -> Option<u16> {
        match self {
            Self::One { class, .. } | Self::Out { class, .. } | Self::In { class, .. } => {
                Some(*class)
            }
            Self::All(_) => None,
        }
    }
}

impl Moving {
    /// Notes what a queue has come to while the class settles: `handed`, where it is empty behind the change of its device's table. The worker
    /// that is to look now, if there is one.
    fn settles(
        &mut self,
        members: &[Member],
        member: usize,
        handed: Option<&impl Fn(usize) -> u64>,
        taken: &impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let worker = |at: usize| members.get(at).map(|m| m.worker);
        let mut looks = None;
        for turned in &mut self.turned {
            if turned.member == member && turned.mark.is_none() {
                let to = worker(turned.to);
                turned.mark = handed.zip(to).map(|(handed, to)| handed(to));
                looks = looks.or(to.filter(|_| turned.mark.is_some()));
            }
            if turned.to == member
                && let (Some(mark), Some(before)) = (turned.mark, worker(turned.member))
            {
                turned.over |= taken(before) >= mark;
            }
        }
        looks
    }

    /// Whether this member, if it is one of a worker's that gives something up, is through; notes that it is.
    fn is_through(
        &mut self,
        members: &[Member],
        member: usize,
        taken: &impl Fn(usize) -> u64,
    ) -> bool {
        let Some(own) = members.get(member).filter(|m| self.what.gives(m.worker)) else {
            return false;
        };
        let beside = members.iter().zip(&self.marks);
        let done = beside.filter(|(m, _)| m.port == own.port).all(|(m, mark)| {
            let mark = mark.as_ref().and_then(|mark| mark.get(own.worker));
            // What a queue gives its own worker it does not hand over.
            mark.is_some_and(|mark| m.worker == own.worker || taken(m.worker) >= *mark)
        });
        if let Some(through) = self.through.get_mut(member) {
            *through |= done;
        }
        done
    }
}

#[cfg(test)]
mod tests;
