//! The body of a packet as a reader: where it stops to run again as a writer, and what it keeps until then.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::StepId;
use millrace_object::insn::Insn;
use millrace_object::program::ObjectId;

use super::effects::{Effect, effect};
use crate::c;
use crate::codegen::{Body, Code, Slice, Statement};
use crate::error::Error;
use crate::sync::sites::Sites;
use crate::sync::{Attempt, Hooks};

/// How a reader says that it has to write.
const RESTART: &str = "return LOCK_RESTART;";

/// Where a test may switch threads: the steps that touch what workers share; none without a test.
pub struct Points(BTreeSet<StepId>);

impl Points {
    /// Those of a program.
    pub fn of(whole: &Slice, shared: &BTreeSet<ObjectId>, test: bool) -> Points {
        use Effect::{Ask, Compare, Read, Write};
        let steps = (0..whole.flow.steps.len()).map(StepId).filter(|_| test);
        let touches = |id: &StepId| {
            let effect = effect(whole.program, shared, whole.step(*id));
            matches!(effect, Ask | Compare | Read | Write)
        };
        Points(steps.filter(touches).collect())
    }

    pub fn at(&self, step: StepId) -> Vec<Statement> {
        let here = self.0.contains(&step);
        here.then(|| "MR_POINT();".into()).into_iter().collect()
    }
}

/// Hooks of a program that is the only one at work.
pub struct Writer(pub Points);

impl Hooks for Writer {
    fn before(&self, _: &Body, step: StepId, _: &Insn) -> Result<Vec<Statement>, Error> {
        Ok(self.0.at(step))
    }
}

/// What a reader has to mind, step by step.
pub struct Reader {
    /// where a test may switch threads
    points: Points,
    /// the numbers of the steps at which it may stop, for a profile
    sites: BTreeMap<StepId, usize>,
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
    pub fn of(
        whole: &Slice,
        shared: &BTreeSet<ObjectId>,
        points: Points,
        sites: &mut Sites,
    ) -> Reader {
        let order = whole.layout();
        let effects: Vec<(StepId, Effect)> = (order.iter())
            .map(|id| (*id, effect(whole.program, shared, whole.step(*id))))
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
            points,
            sites: BTreeMap::new(),
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
        let ends = (reader.stops.iter())
            .chain(&reader.asks)
            .chain(&reader.compares);
        let named = ends.filter_map(|id| Some((*id, sites.of(whole, *id)?)));
        reader.sites = named.collect();
        reader
    }

    /// Says which step it is that may make the packet a writer.
    fn site(&self, step: StepId) -> Vec<Statement> {
        let site = self.sites.get(&step);
        let says = site.map(|site| c!("self->site = {};", *site).into());
        says.into_iter().collect()
    }

    /// Whether it keeps anything, refreshes included (fastpath/sync/stamps.h).
    pub fn undoes(&self) -> bool {
        !self.keeps.is_empty() || !self.refreshed.is_empty() || self.refreshes
    }
}

impl Hooks for Reader {
    fn attempt(&self) -> Option<Attempt> {
        Some(Attempt {
            prefix: "reader",
            title: ", as long as it changes nothing that workers share.",
            done: "LOCK_DONE",
            leave: RESTART,
        })
    }

    fn leaves(&self, step: StepId) -> bool {
        self.stops.contains(&step)
    }

    fn leaving(&self, step: StepId) -> Vec<Statement> {
        self.site(step)
    }

    /// A store that may have to be undone keeps what it overwrites.
    fn before(&self, body: &Body, step: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
        let mut out = self.points.at(step);
        out.extend(self.site(step));
        if let Insn::Store {
            size, base, offset, ..
        }
        | Insn::Atomic {
            size, base, offset, ..
        } = *insn
            && self.keeps.contains(&step)
        {
            let (address, bytes) = (body.address(step, base, offset)?, size.bytes());
            out.push(
                c!(
                    "if (undo_keep(&self->undo, {}, {})) {}",
                    address,
                    bytes,
                    RESTART
                )
                .into(),
            );
        }
        Ok(out)
    }

    /// To store what is there changes nothing.
    fn store(&self, step: StepId, place: &Code, value: &Code) -> Option<Vec<Statement>> {
        let compares = self.compares.contains(&step);
        compares.then(|| vec![c!("if ({} != {}) {}", place, value, RESTART).into()])
    }

    fn callee(&self, step: StepId) -> Option<&'static str> {
        if self.asks.contains(&step) {
            Some("reader_")
        } else {
            self.refreshed.contains(&step).then_some("kept_")
        }
    }
}

/// The steps from which, after themselves, one of these can be reached.
pub fn leading(slice: &Slice, order: &[StepId], ends: BTreeSet<StepId>) -> BTreeSet<StepId> {
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
