//! When a search ends although it has found nothing.

use millrace_check::moment::Moment;
use std::cell::Cell;

use batsat::{Callbacks, ClauseKind, Lit};

/// How often the search goes on between two looks at the clock.
const LOOKS: u32 = 256;

/// Ends a search when its time is up, or its wrong turns are too many.
pub(super) struct Watch {
    pub(super) until: Moment,
    looks: Cell<u32>,
    turns: u64,
    most: u64,
    over: Cell<bool>,
}

impl Watch {
    pub(super) fn new(until: Moment) -> Self {
        Self {
            until,
            looks: Cell::new(0),
            turns: 0,
            most: u64::MAX,
            over: Cell::new(false),
        }
    }

    /// Allows this many wrong turns from now on, if any number is not meant.
    pub(super) fn allow(&mut self, turns: Option<u64>) {
        self.most = turns.map_or(u64::MAX, |n| self.turns.saturating_add(n));
        if Moment::now() <= self.until {
            self.over.set(false);
        }
    }
}

impl Callbacks for Watch {
    fn on_new_clause(&mut self, _: &[Lit], kind: ClauseKind) {
        self.turns += u64::from(kind == ClauseKind::Learnt);
    }

    fn stop(&self) -> bool {
        // Once over it stays so: it is asked again on the way out.
        self.looks.set(self.looks.get().wrapping_add(1));
        let late = self.looks.get().is_multiple_of(LOOKS) && Moment::now() > self.until;
        if late || self.turns > self.most {
            self.over.set(true);
        }
        self.over.get()
    }
}
