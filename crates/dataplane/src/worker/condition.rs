//! State of a foreign element: its worker writes it, anybody reads it while the run lasts.
//!
//! What changes rarely (failures, restarts) is kept as a row of numbered events, so that a reader that looks ten times a
//! second misses none of several between two looks. What the packet path counts is atomic.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millrace_steer::named;

use crate::account::{GuestAccount, GuestFailure};
use crate::clock::now;

/// Events that are kept until somebody has read them; of more the oldest are dropped.
const EVENTS: usize = 64;

named! {
    /// Whether a foreign element runs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(u8)]
    pub enum State {
        /// it gets packets
        #[default]
        Running = "running",
        /// it has failed, and is being started again
        Restarting = "restarting",
        /// it has failed
        Failed = "failed",
        /// it has ended by itself, or with its run
        Ended = "ended",
        /// it runs in another process, and gets packets there
        Moved = "moved",
    }
}

/// Something that happened to a foreign element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// events of the element before this one
    pub number: u64,
    /// its state from then on
    pub state: State,
    /// whether it is a failure
    pub failure: bool,
    /// in words
    pub what: String,
}

#[derive(Debug, Default)]
struct Told {
    last: Option<GuestFailure>,
    events: VecDeque<Event>,
    next: u64,
}

/// State of a foreign element.
#[derive(Debug, Default)]
pub struct Condition {
    /// what the program is called
    pub name: String,
    state: AtomicU8,
    slot: AtomicU32,
    failures: AtomicU64,
    restarts: AtomicU64,
    past: AtomicU64,
    dropped: AtomicU64,
    told: Mutex<Told>,
}

impl Condition {
    /// Of a program of this name that runs in a slot.
    #[must_use]
    pub fn new(name: &str, slot: u32) -> Self {
        Self {
            name: name.to_owned(),
            slot: AtomicU32::new(slot),
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        // What a panicking thread has left is as whole as any.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> State {
        let state = self.state.load(Ordering::Relaxed);
        let known = State::ALL.into_iter().find(|s| *s as u8 == state);
        known.unwrap_or_default()
    }

    /// The slot that it lives in.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.slot.load(Ordering::Relaxed)
    }

    /// It has failed: `cause` is one word or two out of few, for statistics, and `error` says what happened.
    #[cold]
    pub fn failed(&self, cause: &str, error: &str, what: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.lock().last = Some(GuestFailure {
            cause: cause.to_owned(),
            error: error.to_owned(),
            time: now() as f64 / 1e9,
        });
        self.tell(State::Failed, true, what);
    }

    /// It runs again, in this slot.
    #[cold]
    pub fn restarted(&self, slot: u32, what: &str) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.slot.store(slot, Ordering::Relaxed);
        self.tell(State::Running, false, what);
    }

    /// It is in another state.
    #[cold]
    pub fn changed(&self, state: State, what: &str) {
        self.tell(state, false, what);
    }

    /// The same, which is told nobody.
    pub fn silently(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    fn tell(&self, state: State, failure: bool, what: &str) {
        let mut told = self.lock();
        let event = Event {
            number: told.next,
            state,
            failure,
            what: what.to_owned(),
        };
        told.next += 1;
        if told.events.len() == EVENTS {
            told.events.pop_front();
        }
        told.events.push_back(event);
        drop(told);
        self.silently(state);
    }

    /// Packets that it did not see because it does not run: those that passed it by, and those that were dropped.
    pub fn without(&self, past: u64, dropped: u64) {
        self.past.fetch_add(past, Ordering::Relaxed);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
    }

    /// Times that it has failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The events from number `from` on that are still known.
    #[must_use]
    pub fn events(&self, from: u64) -> Vec<Event> {
        let told = self.lock();
        let new = told.events.iter().filter(|e| e.number >= from);
        new.cloned().collect()
    }

    /// As an account shows it; `class` where there is one of it for each packet class.
    #[must_use]
    pub fn account(&self, class: Option<u32>) -> GuestAccount {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        GuestAccount {
            program: self.name.clone(),
            class,
            slot: self.slot(),
            state: self.state().name().to_owned(),
            restarts: count(&self.restarts),
            failures: count(&self.failures),
            passed_by: count(&self.past),
            dropped: count(&self.dropped),
            last_failure: self.lock().last.clone(),
        }
    }
}

/// A program that an element of a chain hosts.
#[derive(Clone, Debug)]
pub struct Watched {
    /// the element's number in the run
    pub element: u64,
    /// what the element is called
    pub name: String,
    /// the program's packet class, where there is one of it for each
    pub class: Option<u32>,
    /// its state
    pub condition: Arc<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_looks_seldom_misses_no_event() {
        let condition = Condition::new("tcpdump", 3);
        assert!(condition.events(0).is_empty());
        condition.failed("SIGSEGV", "a null pointer", "failed: a null pointer");
        condition.restarted(4, "runs again");
        condition.without(5, 0);
        let events = condition.events(0);
        assert_eq!(
            events.iter().map(|e| e.failure).collect::<Vec<_>>(),
            [true, false]
        );
        assert!(condition.events(2).is_empty());
        let account = condition.account(None);
        assert_eq!((account.state.as_str(), account.slot), ("running", 4));
        assert_eq!(
            (account.failures, account.restarts, account.passed_by),
            (1, 1, 5)
        );
        assert_eq!(
            account.last_failure.map(|f| f.cause),
            Some("SIGSEGV".into())
        );
        for round in 0..100 {
            condition.failed("stuck", "it kept a burst", &format!("{round}"));
        }
        // Of many the last are kept.
        let last = condition.events(0);
        assert_eq!(last.len(), EVENTS);
        assert_eq!(
            last.last().map(|e| (e.number, e.what.as_str())),
            Some((101, "99"))
        );
        assert_eq!(condition.state(), State::Failed);
    }
}
