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
use crate::codegen::{Body, Code, Slice, Statement, Unit};
use crate::error::Error;
use crate::sync::lock::effects::{Effect, effect, object, on_memory};
use crate::sync::lock::reader::{Points, leading};
use crate::sync::sites::Sites;
use crate::sync::{Attempt, Hooks};

/// How an attempt ends before the program does.
const AGAIN: &str = "return TRANSACT_AGAIN;";

/// The same where the words that it read may be in places of its own.
const FEW_AGAIN: &str = "return transact_few_leave(&self->transact, pkt, &few);";

/// How it ends with the program then.
const FEW_DONE: &str = "transact_few_end(&self->transact, pkt, &few)";

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
    few: Few,
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
            few: Few::of(whole, &order, &parts, &copied),
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

/// Lookups whose words are in places of the program's own, in registers, as long as each finds an entry
/// (fastpath/sync/transact_few.h).
#[derive(Default)]
struct Few {
    /// the place of each
    places: BTreeMap<StepId, usize>,
    /// the one whose value is a copy, which has place 0, and its size
    copied: Option<(StepId, u32)>,
    /// steps that may store to that copy
    stores: BTreeSet<StepId>,
    /// what they look in
    objects: BTreeSet<ObjectId>,
}

impl Few {
    /// As many as there are places for, each of which a packet comes to at most once; one of them may copy. None of a program
    /// that asks objects of other kinds, as the reasons why these run alone are kept with the sets.
    fn of(
        whole: &Slice,
        order: &[StepId],
        parts: &BTreeMap<StepId, Part>,
        copied: &BTreeSet<StepId>,
    ) -> Few {
        let mut few = Few::default();
        if parts
            .values()
            .any(|p| matches!(p, Part::Ask | Part::Compare))
        {
            return few;
        }
        let finds = order.iter().filter_map(|id| match parts.get(id) {
            Some(Part::Shared(Some(map))) if is_find(whole.step(*id)) => Some((*id, *map)),
            _ => None,
        });
        let once = |id: StepId| !leading(whole, order, BTreeSet::from([id])).contains(&id);
        let finds: Vec<(StepId, ObjectId)> = finds.filter(|(id, _)| once(*id)).collect();
        let bytes = |map: ObjectId| whole.program.objects[map.0].value_bytes;
        few.copied = (finds.iter())
            .find(|(id, map)| copied.contains(id) && bytes(*map) <= MOST_COPIED)
            .map(|(id, map)| (*id, bytes(*map)));
        if let Some((id, _)) = few.copied {
            few.places.insert(id, 0);
            let map = finds.iter().find(|(of, _)| *of == id).map(|(_, map)| *map);
            let stores = |id: &&StepId| {
                let step = whole.step(**id);
                let loads = matches!(step.op, Op::Plain(Insn::Load { .. }));
                !loads && map.is_some_and(|map| touches(step, map))
            };
            few.stores = order.iter().filter(stores).copied().collect();
        }
        let rest = finds.iter().filter(|(id, _)| !copied.contains(id));
        for (id, _) in rest.take(PLACES - few.places.len()) {
            few.places.insert(*id, few.places.len());
        }
        let found = finds.iter().filter(|(id, _)| few.places.contains_key(id));
        few.objects = found.map(|(_, map)| *map).collect();
        few
    }

    fn any(&self) -> bool {
        !self.places.is_empty()
    }
}

/// The function of an object's lookups whose words are in the sets.
pub fn sets(unit: &Unit, object: ObjectId) -> String {
    format!("{}_sets", unit.member(object))
}

/// `TRANSACT_FEW`.
const PLACES: usize = 4;

/// Bytes of a value that a packet copies into a local.
const MOST_COPIED: u32 = 128;

/// Whether a call only looks for an entry, and has a function for it whose word is in a place (fastpath/state/shared_hash.h).
fn is_find(step: &Step) -> bool {
    const FINDS: &[&str] = &[
        "map_get",
        "map_refresh",
        "map_lookup_elem",
        "vector_at",
        "allocator_get",
        "allocator_refresh",
    ];
    let Op::Plain(Insn::Call { helper }) = step.op else {
        return false;
    };
    helper::by_number(helper).is_some_and(|h| FINDS.contains(&h.name))
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

impl Attempting {
    /// The objects in which lookups have places.
    pub fn finds(&self) -> &BTreeSet<ObjectId> {
        &self.few.objects
    }

    /// Whether it keeps something to undo.
    pub fn undoes(&self) -> bool {
        !self.keeps.is_empty() || !self.refreshed.is_empty()
    }

    /// Whether words may be in places of the program's own, so that nothing has to begin the sets before it.
    pub fn is_few(&self) -> bool {
        self.few.any()
    }

    /// The statement with which it leaves.
    fn again(&self) -> &'static str {
        if self.is_few() { FEW_AGAIN } else { AGAIN }
    }

    /// What the packet read is in the sets from here on.
    fn sets(&self) -> Option<Statement> {
        let few = self.is_few();
        few.then(|| "transact_few_sets(&self->transact, pkt, &few);".into())
    }

    /// The reason why the packet runs alone, if it leaves here.
    fn says(&self, why: usize) -> Vec<Statement> {
        let why = c!("self->transact.why = TRANSACT_WHYS + {};", why).into();
        self.sets().into_iter().chain([why]).collect()
    }
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
            done: if self.is_few() {
                FEW_DONE
            } else {
                "TRANSACT_DONE"
            },
            leave: self.again(),
        })
    }

    fn leaves(&self, step: StepId) -> bool {
        self.stops.contains_key(&step)
    }

    fn leaving(&self, step: StepId) -> Vec<Statement> {
        let why = self.stops.get(&step);
        why.map(|why| self.says(*why)).unwrap_or_default()
    }

    /// To store what is there changes nothing.
    fn store(&self, step: StepId, place: &Code, value: &Code) -> Option<Vec<Statement>> {
        self.compares
            .contains_key(&step)
            .then(|| vec![c!("if ({} != {}) {}", place, value, self.again()).into()])
    }

    fn before(&self, body: &Body, step: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
        let mut out = self.points.at(step);
        let site = self.sites.get(&step);
        out.extend(site.map(|site| Statement::from(c!("self->transact.step = {};", *site))));
        let why = self.asks.get(&step).or(self.compares.get(&step));
        out.extend(why.into_iter().flat_map(|why| self.says(*why)));
        if self.commits.contains(&step) {
            let commit = match self.is_few() {
                true => "transact_few_commit(&self->transact, pkt, &few)",
                false => "transact_commit(&self->transact)",
            };
            out.push(c!("if (mr_unlikely(!{})) {}", commit, self.again()).into());
        }
        if self.calls.contains_key(&step) && !self.few.places.contains_key(&step) {
            out.extend(self.sets());
        }
        if self.few.stores.contains(&step) {
            out.push("few.stored = 1;".into());
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
                    self.again()
                )
                .into(),
            );
        }
        Ok(out)
    }

    fn declarations(&self, body: &Body) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        if self.is_few() {
            // Only a first attempt goes on from a prefetch pass.
            let state = match body.resume {
                Some(_) => "TRANSACT_FEW_PLACES",
                None => "transact_few_begin(&self->transact)",
            };
            lines.push(format!("struct transact_few few = {{ .state = {state} }};"));
        }
        if let Some((_, bytes)) = self.few.copied {
            lines.push(format!("_Alignas(8) u8 copy[{}];", bytes.max(1)));
        }
        Ok(lines)
    }

    fn more(&self, body: &Body, step: StepId) -> Result<Option<Code>, Error> {
        let Some(place) = self.few.places.get(&step) else {
            return Ok(None);
        };
        let copies = self.few.copied.is_some_and(|(id, _)| id == step);
        let copy = if copies { "copy" } else { "NULL" };
        let (object, _) = body.object(step)?;
        let sets = sets(body.unit, object);
        Ok(Some(c!("&few, {}, {}, {}", *place, copy, sets)))
    }

    fn callee(&self, step: StepId) -> Option<&'static str> {
        if self.few.places.contains_key(&step) {
            return Some("few_");
        }
        let refreshed = self.refreshed.contains(&step).then_some("kept_");
        let asked = self.asks.contains_key(&step).then_some("reader_");
        self.calls.get(&step).copied().or(asked).or(refreshed)
    }
}
