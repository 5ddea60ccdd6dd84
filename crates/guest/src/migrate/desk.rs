//! The rendezvous of the worker that runs a guest and the thread that moves it.
//!
//! The worker looks once a burst, with one relaxed load, whether it is asked to wait. It waits with the guest at rest
//! and no packet in its hands that the guest has seen in part, and is told how to go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::away::Away;
use crate::shared::{Shared, lock};
use crate::snapshot::SnapshotError;
use crate::thread::Context;

/// How long the worker may take to go on once it is told to.
const GOES: Duration = Duration::from_secs(1);

/// How the worker goes on.
pub enum Outcome {
    /// with the guest here
    Stay,
    /// with the guest elsewhere
    Moved(Box<Away>),
}

enum Turn {
    /// nobody asks
    Free,
    /// the worker is asked to wait
    Asked,
    /// it waits, since then
    Waits(Context, Instant),
    /// it is told to go on
    Told(Outcome),
    /// there is no guest to move any more, and why
    Closed(&'static str),
}

/// The desk of an element.
pub struct Desk {
    /// what the guest is called
    pub name: String,
    guest: Mutex<Arc<Shared>>,
    asked: AtomicBool,
    turn: Mutex<Turn>,
    changed: Condvar,
    /// how long the worker waited last
    waited: Mutex<Option<Duration>>,
    /// somebody moves it or takes a snapshot
    busy: AtomicBool,
}

static DESKS: Mutex<Vec<Weak<Desk>>> = Mutex::new(Vec::new());

impl Desk {
    /// Of a guest that runs; it can be found by its name from now on.
    #[must_use]
    pub fn open(guest: &Arc<Shared>) -> Arc<Self> {
        let desk = Arc::new(Self {
            name: guest.name.clone(),
            guest: Mutex::new(guest.clone()),
            asked: AtomicBool::new(false),
            turn: Mutex::new(Turn::Free),
            changed: Condvar::new(),
            waited: Mutex::new(None),
            busy: AtomicBool::new(false),
        });
        let mut desks = lock(&DESKS);
        desks.retain(|d| d.strong_count() > 0);
        desks.push(Arc::downgrade(&desk));
        desk
    }

    /// The guest is another one now: it was started again.
    pub fn replace(&self, guest: &Arc<Shared>) {
        *lock(&self.guest) = guest.clone();
        *lock(&self.turn) = Turn::Free;
    }

    /// The guest.
    #[must_use]
    pub fn guest(&self) -> Arc<Shared> {
        lock(&self.guest).clone()
    }

    /// There is no guest to move any more.
    pub fn close(&self, why: &'static str) {
        *lock(&self.turn) = Turn::Closed(why);
        self.changed.notify_all();
    }

    /// Whether the worker is asked to wait.
    #[inline]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The worker waits until it is told how to go on. The guest is at rest in `context`; none: it does not run.
    pub fn wait(&self, context: Option<Context>) -> Outcome {
        let mut turn = lock(&self.turn);
        self.asked.store(false, Ordering::Relaxed);
        if !matches!(*turn, Turn::Asked) {
            return Outcome::Stay;
        }
        let Some(context) = context else {
            *turn = Turn::Closed("it does not run any more");
            self.changed.notify_all();
            return Outcome::Stay;
        };
        let since = Instant::now();
        *turn = Turn::Waits(context, since);
        self.changed.notify_all();
        loop {
            match std::mem::replace(&mut *turn, Turn::Free) {
                Turn::Told(outcome) => {
                    *lock(&self.waited) = Some(since.elapsed());
                    self.changed.notify_all();
                    return outcome;
                }
                // Whoever asked is there until it has told (`Hold`).
                other => *turn = other,
            }
            turn = self
                .changed
                .wait(turn)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the desk for a move or a snapshot.
    ///
    /// # Errors
    /// Somebody else has it.
    pub fn claim(self: &Arc<Self>) -> Result<Claim, SnapshotError> {
        if self.busy.swap(true, Ordering::AcqRel) {
            return Err(SnapshotError::Guest(format!(
                "{}: it is being moved, or a snapshot is taken of it",
                self.name
            )));
        }
        Ok(Claim(self.clone()))
    }
}

/// One has the desk.
pub struct Claim(Arc<Desk>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Claim {
    /// Has the worker wait.
    ///
    /// # Errors
    /// It does not come within `limit`, or there is no guest any more.
    pub fn hold(&self, limit: Duration) -> Result<Hold<'_>, SnapshotError> {
        let desk = &self.0;
        let mut turn = lock(&desk.turn);
        if matches!(*turn, Turn::Free) {
            *turn = Turn::Asked;
            desk.asked.store(true, Ordering::Relaxed);
        }
        let deadline = Instant::now() + limit;
        loop {
            let gone = |why: &str| Err(SnapshotError::Guest(format!("{}: {why}", desk.name)));
            match &*turn {
                Turn::Waits(context, since) => {
                    let (context, since) = (*context, *since);
                    drop(turn);
                    *lock(&desk.waited) = None;
                    return Ok(Hold {
                        desk,
                        context,
                        since,
                        told: false,
                    });
                }
                Turn::Closed(why) => return gone(why),
                _ => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                *turn = Turn::Free;
                desk.asked.store(false, Ordering::Relaxed);
                return gone("its worker did not come between two bursts");
            }
            turn = desk
                .changed
                .wait_timeout(turn, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// The worker waits; it goes on at the latest when this goes.
pub struct Hold<'a> {
    desk: &'a Desk,
    /// where the packets' thread of the guest is at rest
    pub context: Context,
    /// since when
    pub since: Instant,
    told: bool,
}

impl Hold<'_> {
    /// Lets the worker go on; gives how long it waited.
    pub fn tell(mut self, outcome: Outcome) -> Duration {
        self.say(outcome);
        let gone = Instant::now() + GOES;
        let mut turn = lock(&self.desk.turn);
        while matches!(*turn, Turn::Told(_)) && Instant::now() < gone {
            let changed = self.desk.changed.wait_timeout(turn, GOES);
            turn = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(turn);
        let waited = *lock(&self.desk.waited);
        waited.unwrap_or_else(|| self.since.elapsed())
    }

    fn say(&mut self, outcome: Outcome) {
        *lock(&self.desk.turn) = Turn::Told(outcome);
        self.desk.changed.notify_all();
        self.told = true;
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.say(Outcome::Stay);
        }
    }
}

/// The guests of this process that can be moved: names and slots.
#[must_use]
pub fn all() -> Vec<(String, u32)> {
    let desks: Vec<_> = lock(&DESKS).iter().filter_map(Weak::upgrade).collect();
    let open = desks
        .iter()
        .filter(|d| !matches!(*lock(&d.turn), Turn::Closed(_)));
    open.map(|d| (d.name.clone(), d.guest().slot.number()))
        .collect()
}

/// The guest of this name, or the only one of this slot's number.
///
/// # Errors
/// There is none, or several.
pub fn find(name: &str) -> Result<Arc<Desk>, SnapshotError> {
    let desks: Vec<_> = lock(&DESKS).iter().filter_map(Weak::upgrade).collect();
    let named = |d: &&Arc<Desk>| d.name == name || d.guest().slot.number().to_string() == name;
    let found: Vec<_> = desks.iter().filter(named).collect();
    let (what, help) = match found.as_slice() {
        [desk] => return Ok((*desk).clone()),
        [] => ("there is no such guest", "`millrace ctl guests` lists them"),
        _ => (
            "several guests have this name",
            "name it by its slot's number",
        ),
    };
    Err(SnapshotError::Here {
        what: format!("{name}: {what}"),
        help,
    })
}
