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
//! Packets that one queue received stay in order throughout, and so do those of a flow, which a device gives to one
//! queue. A step costs each queue one lock; without a move it is one load a burst.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use millrace_steer::Owners;

/// How long a move may take: a worker asks for packets again after at most as long as a guest may keep a burst.
const MOST: Duration = Duration::from_secs(10);

/// The classes of a run, and which worker has each.
pub struct Classes {
    /// a port of the chain each, the last one for those behind it: their queues are classes
    owners: Vec<Owners>,
    workers: usize,
    /// by class
    worker: Vec<AtomicU32>,
    /// raised by each step of a move, so that queues look
    step: AtomicU64,
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    members: Vec<Member>,
    moving: Option<Moving>,
    /// of the move that ended last
    ended: Option<Result<Moved, MoveError>>,
    /// the run is about to end: nothing moves any more
    closed: bool,
}

/// A queue of a port.
struct Member {
    port: usize,
    worker: usize,
    wake: Box<dyn Fn() + Send + Sync>,
}

struct Moving {
    class: u16,
    from: usize,
    to: usize,
    began: Instant,
    /// by member: what it had handed to `from` when it began to hold; none before
    marks: Vec<Option<u64>>,
    /// by member, where it is one of `from`'s: it is through with all of that
    through: Vec<bool>,
}

/// What a move was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// the class
    pub class: u16,
    /// the worker that had it
    pub from: usize,
    /// the worker that has it
    pub to: usize,
    /// from the order to hold its packets until its new worker had it
    pub held: Duration,
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
}

/// What a queue is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// the step that this is the answer to; 0, which is none: look again
    pub step: u64,
    /// the class whose packets it holds
    pub hold: Option<u16>,
}

impl Classes {
    /// As many classes as `owners` lead to, dealt out to the workers in turn.
    #[must_use]
    pub fn new(owners: Vec<Owners>, classes: u16, workers: usize) -> Arc<Self> {
        let workers = workers.max(1);
        let worker = (0..u32::from(classes.max(1))).map(|class| class % workers as u32);
        Arc::new(Self {
            owners,
            workers,
            worker: worker.map(AtomicU32::new).collect(),
            step: AtomicU64::new(1),
            inside: Mutex::default(),
            changed: Condvar::new(),
        })
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
        if inside.closed {
            return Err(MoveError::Ends);
        }
        // One that has ended is not over before whoever asked for it knows.
        if inside.moving.is_some() || inside.ended.is_some() {
            return Err(MoveError::Busy);
        }
        let (from, began) = (self.worker(class), Instant::now());
        let members = inside.members.len();
        let any = inside.members.iter().any(|m| m.worker == from);
        if from == to || !any {
            // Without a queue of the worker's there are no packets of it either.
            let held = Duration::ZERO;
            self.pass(class, to);
            return Ok(Moved {
                class,
                from,
                to,
                held,
            });
        }
        inside.moving = Some(Moving {
            class,
            from,
            to,
            began,
            marks: vec![None; members],
            through: vec![false; members],
        });
        self.announce(&inside);
        loop {
            if let Some(ended) = inside.ended.take() {
                return ended;
            }
            let left = MOST.saturating_sub(began.elapsed());
            if left.is_zero() {
                self.end(&mut inside, Err(MoveError::Late));
                continue;
            }
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes part, as worker `worker`'s queue of port `port`: `wake` has it look soon. Its number here.
    pub fn join(
        &self,
        port: usize,
        worker: usize,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> usize {
        let mut inside = self.lock();
        let wake = Box::new(wake);
        inside.members.push(Member { port, worker, wake });
        inside.members.len() - 1
    }

    /// Whether a queue that looked at this step is to look again.
    #[inline]
    #[must_use]
    pub fn has_changed(&self, step: u64) -> bool {
        self.step.load(Ordering::Acquire) != step
    }

    /// A queue looks what it is to do, between two bursts: it holds nothing of what it received before, and its worker
    /// is through with all that it gave it. `handed` says how many packets it has handed to a worker so far, `taken`
    /// how many it was handed by one and has given out. It keeps packets of one class at a time: one that still has some
    /// of class `waiting` lets them go before it takes part in the move of another.
    pub fn look(
        &self,
        member: usize,
        waiting: Option<u16>,
        handed: impl Fn(usize) -> u64,
        taken: impl Fn(usize) -> u64,
    ) -> Looked {
        let mut inside = self.lock();
        let Inside {
            members, moving, ..
        } = &mut *inside;
        let mut over = None;
        if let Some(moving) = moving {
            if waiting.is_some_and(|class| class != moving.class) {
                return Looked {
                    step: 0,
                    hold: None,
                };
            }
            if let Some(mark @ None) = moving.marks.get_mut(member) {
                *mark = Some(handed(moving.from));
                // The worker that gives the class up may be through now.
                self.raise(members, |m| m.worker == moving.from);
            }
            if moving.is_through(members, member, &taken) {
                let own = members.iter().zip(&moving.through);
                if own
                    .filter(|(m, _)| m.worker == moving.from)
                    .all(|(_, t)| *t)
                {
                    over = Some(Moved {
                        class: moving.class,
                        from: moving.from,
                        to: moving.to,
                        held: moving.began.elapsed(),
                    });
                }
            }
        }
        if let Some(moved) = over {
            self.pass(moved.class, moved.to);
            self.end(&mut inside, Ok(moved));
        }
        Looked {
            step: self.step.load(Ordering::Relaxed),
            hold: inside.moving.as_ref().map(|m| m.class),
        }
    }

    /// The run is about to end: a class that is under way stays where it was.
    pub fn close(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        if inside.moving.is_some() {
            self.end(&mut inside, Err(MoveError::Ends));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // What a panicking thread has left is as whole as any: each step is one assignment.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, class: u16, to: usize) {
        if let Some(worker) = self.worker.get(usize::from(class)) {
            worker.store(to as u32, Ordering::Release);
        }
    }

    fn end(&self, inside: &mut Inside, ended: Result<Moved, MoveError>) {
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

impl Moving {
    /// Whether this member, if it is one of the worker's that gives the class up, is through; notes that it is.
    fn is_through(
        &mut self,
        members: &[Member],
        member: usize,
        taken: &impl Fn(usize) -> u64,
    ) -> bool {
        let Some(own) = members.get(member).filter(|m| m.worker == self.from) else {
            return false;
        };
        let beside = members.iter().zip(&self.marks);
        let done = beside.filter(|(m, _)| m.port == own.port).all(|(m, mark)| {
            // What a queue gives its own worker it does not hand over.
            mark.is_some_and(|mark| m.worker == self.from || taken(m.worker) >= mark)
        });
        if let Some(through) = self.through.get_mut(member) {
            *through |= done;
        }
        done
    }
}
