//! What a packet does as a reader: where it stops and becomes a writer, and what it keeps until then.

use std::collections::BTreeSet;

use millrace_check::facts::StepId;

use super::Sharing;
use super::effects::{Effect, effect};
use crate::alone::Slice;

/// What a reader has to mind, step by step.
pub struct Reader {
    /// it stops here and runs again as a writer
    stops: BTreeSet<StepId>,
    /// it stops here if what it finds is for a writer to tell
    asks: BTreeSet<StepId>,
    /// a store at which it stops if something else is there
    compares: BTreeSet<StepId>,
    /// a store that may have to be undone
    keeps: BTreeSet<StepId>,
    /// a refresh of an own entry that may have to be undone
    refreshed: BTreeSet<StepId>,
    /// whether a refresh of a shared entry may have to be undone
    refreshes: bool,
}

impl Reader {
    /// The reader of a program.
    ///
    /// A step that changes the packet or the worker's own state may be done at once if none at which the
    /// reader stops can be reached from it. Otherwise a store keeps what it overwrites, and so does a refresh of an
    /// own entry: the second run may be at a later time, when the entry has expired if nothing refreshes it.
    /// Whatever else there is, the reader stops before it.
    pub fn of(whole: &Slice, sharing: &Sharing) -> Reader {
        let order = whole.layout();
        let effects: Vec<(StepId, Effect)> = (order.iter())
            .map(|id| (*id, effect(whole.program, sharing, whole.step(*id))))
            .collect();
        let which = |wanted: &[Effect]| -> BTreeSet<StepId> {
            let of = effects.iter().filter(|(_, e)| wanted.contains(e));
            of.map(|(id, _)| *id).collect()
        };
        let stops = which(&[Effect::Write]);
        let asks = which(&[Effect::Ask]);
        let compares = which(&[Effect::Compare]);
        let ends = which(&[Effect::Write, Effect::Ask, Effect::Compare]);
        let leads = leading(whole, &order, ends);
        let mut reader = Reader {
            stops,
            asks,
            compares,
            keeps: BTreeSet::new(),
            refreshed: BTreeSet::new(),
            refreshes: false,
        };
        reader.refreshes = reader.asks.iter().any(|id| leads.contains(id));
        for (id, effect) in effects.iter().filter(|(id, _)| leads.contains(id)) {
            match effect {
                Effect::Store => {
                    reader.keeps.insert(*id);
                }
                Effect::Own => {
                    reader.stops.insert(*id);
                }
                Effect::Refresh => {
                    reader.refreshed.insert(*id);
                }
                Effect::None | Effect::Read | Effect::Ask | Effect::Compare | Effect::Write => {}
            }
        }
        reader
    }

    /// Whether it runs again as a writer instead of this step.
    pub fn stops(&self, id: StepId) -> bool {
        self.stops.contains(&id)
    }

    /// What stands before the name of the kind's function for readers, where this call goes to one that may say that
    /// only a writer can do it.
    pub fn variant(&self, id: StepId) -> Option<&'static str> {
        if self.asks.contains(&id) {
            Some("reader_")
        } else {
            self.refreshed.contains(&id).then_some("kept_")
        }
    }

    /// Whether this store is none if the same is there, and else stops it.
    pub fn compares(&self, id: StepId) -> bool {
        self.compares.contains(&id)
    }

    /// Whether this store keeps what it overwrites.
    pub fn keeps(&self, id: StepId) -> bool {
        self.keeps.contains(&id)
    }

    /// Whether it keeps anything, refreshes included (fastpath/sync/stamps.h).
    pub fn undoes(&self) -> bool {
        !self.keeps.is_empty() || !self.refreshed.is_empty() || self.refreshes
    }
}

/// The steps from which, after themselves, one of these can be reached.
fn leading(slice: &Slice, order: &[StepId], ends: BTreeSet<StepId>) -> BTreeSet<StepId> {
    let mut before = vec![Vec::new(); slice.flow.steps.len()];
    for &id in order {
        for next in slice.successors(id) {
            before[next.0].push(id);
        }
    }
    let mut found = BTreeSet::new();
    let mut pending: Vec<StepId> = ends.into_iter().collect();
    while let Some(id) = pending.pop() {
        for &earlier in &before[id.0] {
            if found.insert(earlier) {
                pending.push(earlier);
            }
        }
    }
    found
}
