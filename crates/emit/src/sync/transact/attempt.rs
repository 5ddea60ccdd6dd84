//! The body of a packet as a transaction: which steps touch what is shared, which it leaves to run alone, where it commits,
//! and what it keeps until then.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::{Access, ArgFact, Op, Step, StepId};
use millrace_object::Program;
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::ObjectId;

use super::alone::Whys;
use crate::c;
use crate::codegen::{Body, Code, Slice, Statement};
use crate::error::Error;
use crate::sync::lock::effects::{Effect, effect, object, on_memory};
use crate::sync::lock::reader::{Points, leading};
use crate::sync::sites::Sites;
use crate::sync::{Attempt, Hooks};

/// How an attempt ends before the program does.
const AGAIN: &str = "return TRANSACT_AGAIN;";

/// The calls of which what is shared has functions for packets beside each other (fastpath/state/shared_hash.h,
/// shared_allocator.h).
const CALLS: &[&str] = &[
    "map_get",
    "map_refresh",
    "map_put",
    "map_delete",
    "map_lookup_elem",
    "map_update_elem",
    "map_delete_elem",
    "allocator_lease",
    "allocator_get",
    "allocator_refresh",
    "allocator_free",
    "vector_at",
];

/// What a step is to an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// nothing to others, and it may be done again
    Free,
    /// it touches what is shared, as a transaction may; a call is one on this map
    Shared(Option<ObjectId>),
    /// it touches what is shared, and runs alone
    Alone,
    /// it asks a shared object of another kind by its function for readers, which may not be able to tell
    Ask,
    /// it stores into a shared object of another kind, and runs alone where something else is there
    Compare,
    /// it stores up to 8 bytes into the packet or the worker's own state
    Store,
    /// it refreshes an entry of the worker's own
    Refresh,
    /// it changes the packet or the worker's own state otherwise
    Own,
}

fn part(
    program: &Program,
    shared: &BTreeSet<ObjectId>,
    maps: &BTreeSet<ObjectId>,
    step: &Step,
) -> Part {
    if let Op::Plain(Insn::Call { helper }) = step.op
        && let Some(helper) = helper::by_number(helper)
        && let Some(map) = object(step, helper).filter(|o| maps.contains(o))
    {
        return match on_memory(shared, step, helper, Effect::None) {
            Effect::None | Effect::Read if CALLS.contains(&helper.name) => Part::Shared(Some(map)),
            _ => Part::Alone,
        };
    }
    // Values of maps are copies of the packet's own, so that an atomic operation on one is a store.
    if let Op::Plain(Insn::Atomic { .. }) = step.op
        && matches!(step.access, Some(Access::Value(o)) if maps.contains(&o))
    {
        return Part::Shared(None);
    }
    match effect(program, shared, step) {
        Effect::None => Part::Free,
        Effect::Store => Part::Store,
        Effect::Refresh => Part::Refresh,
        Effect::Own => Part::Own,
        Effect::Write => Part::Alone,
        Effect::Ask => Part::Ask,
        Effect::Compare => match step.access {
            Some(Access::Value(o)) if !maps.contains(&o) => Part::Compare,
            _ => Part::Shared(None),
        },
        // What is no map only who is alone changes, and nobody is while a packet has its core's line.
        Effect::Read if maps.iter().any(|map| touches(step, *map)) => Part::Shared(None),
        Effect::Read => Part::Free,
    }
}

/// What an attempt has to mind, step by step.
pub struct Attempting {
    /// where a test may switch threads
    points: Points,
    /// it ends here, and the packet runs alone; each with its number among the reasons to do so
    stops: BTreeMap<StepId, usize>,
    /// it ends here if what is found is for a packet alone to tell; likewise
    asks: BTreeMap<StepId, usize>,
    /// a store at which it ends if something else is there; likewise
    compares: BTreeMap<StepId, usize>,
    /// calls on shared maps, with the prefix of their functions
    calls: BTreeMap<StepId, &'static str>,
    /// the numbers of these calls and stops, for a profile
    sites: BTreeMap<StepId, usize>,
    /// it commits before these
    commits: BTreeSet<StepId>,
    /// a store that may have to be undone
    keeps: BTreeSet<StepId>,
    /// a refresh of an own entry that may have to be undone
    refreshed: BTreeSet<StepId>,
}

impl Attempting {
    /// That of a program.
    pub fn of(
        whole: &Slice,
        shared: &BTreeSet<ObjectId>,
        maps: &BTreeSet<ObjectId>,
        points: Points,
        (whys, sites): (&mut Whys, &mut Sites),
    ) -> Attempting {
        let order = whole.layout();
        let parts: BTreeMap<StepId, Part> = (order.iter())
            .map(|id| (*id, part(whole.program, shared, maps, whole.step(*id))))
            .collect();
        let ends: BTreeSet<StepId> = (parts.iter())
            .filter(|(_, p)| matches!(p, Part::Shared(_) | Part::Alone | Part::Ask | Part::Compare))
            .map(|(id, _)| *id)
            .collect();
        // From these, or behind them, something shared is still reached.
        let mut open = leading(whole, &order, ends.clone());
        let before: BTreeSet<StepId> = open.clone();
        open.extend(&ends);
        let copied = copied(whole, &order, maps, &parts);
        let mut found = Attempting {
            points,
            stops: BTreeMap::new(),
            asks: BTreeMap::new(),
            compares: BTreeMap::new(),
            calls: BTreeMap::new(),
            sites: BTreeMap::new(),
            commits: BTreeSet::new(),
            keeps: BTreeSet::new(),
            refreshed: BTreeSet::new(),
        };
        for (&id, part) in &parts {
            for next in whole.successors(id) {
                if open.contains(&id) && !open.contains(&next) {
                    found.commits.extend(first_plain(whole, next));
                }
            }
            match part {
                Part::Shared(Some(_)) => {
                    let copies = copied.contains(&id);
                    let prefix = if copies { "copied_" } else { "packet_" };
                    found.calls.insert(id, prefix);
                    found
                        .sites
                        .extend(sites.of(whole, id).map(|site| (id, site)));
                }
                Part::Alone => {
                    found.stops.insert(id, whys.of(whole, id));
                }
                Part::Ask => {
                    found.asks.insert(id, whys.of(whole, id));
                }
                Part::Compare => {
                    found.compares.insert(id, whys.of(whole, id));
                }
                Part::Store if before.contains(&id) => {
                    found.keeps.insert(id);
                }
                Part::Refresh if before.contains(&id) => {
                    found.refreshed.insert(id);
                }
                Part::Own if before.contains(&id) => {
                    found.stops.insert(id, whys.of(whole, id));
                }
                Part::Free | Part::Shared(None) | Part::Store | Part::Refresh | Part::Own => {}
            }
        }
        found
    }
}

/// The steps to which control comes from here by branches and jumps alone, before which nothing can stand.
fn first_plain(whole: &Slice, from: StepId) -> BTreeSet<StepId> {
    let (mut found, mut seen, mut pending) = (BTreeSet::new(), BTreeSet::new(), vec![from]);
    while let Some(id) = pending.pop() {
        if matches!(whole.step(id).op, Op::Plain(_)) {
            found.insert(id);
        } else if seen.insert(id) {
            pending.extend(whole.successors(id));
        }
    }
    found
}

/// The reason why the packet runs alone, if it leaves here.
fn says(why: usize) -> Statement {
    c!("self->transact.why = TRANSACT_WHYS + {};", why).into()
}

/// The calls whose value has to be a copy of the packet's own: on a map to whose values some step stores; and those behind
/// which the packet may put something there and read a value again, which may be this one.
fn copied(
    whole: &Slice,
    order: &[StepId],
    maps: &BTreeSet<ObjectId>,
    parts: &BTreeMap<StepId, Part>,
) -> BTreeSet<StepId> {
    let mut found = BTreeSet::new();
    for map in maps {
        let calls = |puts: bool| -> BTreeSet<StepId> {
            let on = parts
                .iter()
                .filter(|(_, p)| **p == Part::Shared(Some(*map)));
            let on = on.map(|(id, _)| *id);
            on.filter(|id| !puts || is_put(whole.step(*id))).collect()
        };
        let touches = |id: &&StepId| touches(whole.step(**id), *map);
        let touching: BTreeSet<StepId> = order.iter().filter(touches).copied().collect();
        let stores = |id: &StepId| {
            matches!(
                whole.step(*id).op,
                Op::Plain(Insn::Store { .. } | Insn::Atomic { .. })
            )
        };
        if touching.iter().any(stores) {
            found.extend(calls(false));
            continue;
        }
        let read_again = &calls(true) & &leading(whole, order, touching);
        found.extend(&calls(false) & &leading(whole, order, read_again));
    }
    found
}

fn is_put(step: &Step) -> bool {
    let Op::Plain(Insn::Call { helper }) = step.op else {
        return false;
    };
    helper::by_number(helper).is_some_and(|h| ["map_put", "map_update_elem"].contains(&h.name))
}

/// Whether a step loads or stores bytes of a value of this map.
fn touches(step: &Step, map: ObjectId) -> bool {
    let value = |access: Access| match access {
        Access::Value(o) => o == map,
        Access::Several => true,
        _ => false,
    };
    let of_argument =
        |arg: &ArgFact| matches!(*arg, ArgFact::Memory { access, .. } if value(access));
    step.access.is_some_and(value) || step.args.iter().any(of_argument)
}

impl Hooks for Attempting {
    fn attempt(&self) -> Option<Attempt> {
        Some(Attempt {
            prefix: "attempt",
            title: " as a transaction.",
            done: "TRANSACT_DONE",
            leave: AGAIN,
        })
    }

    fn leaves(&self, step: StepId) -> bool {
        self.stops.contains_key(&step)
    }

    fn leaving(&self, step: StepId) -> Vec<Statement> {
        self.stops
            .get(&step)
            .map(|why| says(*why))
            .into_iter()
            .collect()
    }

    /// To store what is there changes nothing.
    fn store(&self, step: StepId, place: &Code, value: &Code) -> Option<Vec<Statement>> {
        self.compares
            .contains_key(&step)
            .then(|| vec![c!("if ({} != {}) {}", place, value, AGAIN).into()])
    }

    fn before(&self, body: &Body, step: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
        let mut out = self.points.at(step);
        let site = self.sites.get(&step);
        out.extend(site.map(|site| Statement::from(c!("self->transact.step = {};", *site))));
        let why = self.asks.get(&step).or(self.compares.get(&step));
        out.extend(why.map(|why| says(*why)));
        if self.commits.contains(&step) {
            out.push(c!("if (!transact_commit(&self->transact)) {}", AGAIN).into());
        }
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
                    "if (undo_keep(&self->transact.undo, {}, {})) {}",
                    address,
                    bytes,
                    AGAIN
                )
                .into(),
            );
        }
        Ok(out)
    }

    fn callee(&self, step: StepId) -> Option<&'static str> {
        let refreshed = self.refreshed.contains(&step).then_some("kept_");
        let asked = self.asks.contains_key(&step).then_some("reader_");
        self.calls.get(&step).copied().or(asked).or(refreshed)
    }
}
