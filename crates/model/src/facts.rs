//! How objects are used, from the paths where they are all, else from what the proof of safety saw: every
//! access of every execution, without its key.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::Checked;
use millrace_check::facts::{Access as At, ArgFact, Flow, Op};
use millrace_object::contract::Merging;
use millrace_object::helper::{self, Arg};
use millrace_object::insn::Insn;
use millrace_object::program::{ObjectId, Program, Role};

use crate::model::{Effect, Entry, Object, Touch, Use};
use crate::observe::{self, Observed};
use crate::solver::Oracle;
use crate::{kinds, sums, writers};

/// Accesses that may happen to an object.
#[derive(Clone, Copy, Default)]
struct Seen {
    read: bool,
    added: bool,
    written: bool,
    written_at_start: bool,
}

impl Seen {
    fn add(&mut self, effect: Effect, start: bool) {
        match effect {
            Effect::Read => self.read = true,
            Effect::Add if !start => self.added = true,
            Effect::Refresh | Effect::Write if !start => self.written = true,
            _ => self.written_at_start = true,
        }
    }

    fn absorb(&mut self, other: Seen) {
        self.read |= other.read;
        self.added |= other.added;
        self.written |= other.written;
        self.written_at_start |= other.written_at_start;
    }

    /// The use of an object; `adds`: what packets leave in it is sums, and nothing depends on them.
    fn usage(self, adds: bool) -> Use {
        if self.written || self.added {
            if adds { Use::Additive } else { Use::ReadWrite }
        } else if self.written_at_start {
            Use::WrittenAtStart
        } else if self.read {
            Use::ReadOnly
        } else {
            Use::Unused
        }
    }
}

/// All bytes of a value; of records, which are as long as the ring at most, whose capacity is in bytes.
fn whole(program: &Program, object: ObjectId) -> (u32, u32) {
    let bytes = program.objects.get(object.0).map_or(0, |o| {
        let ring = u32::try_from(o.capacity).unwrap_or(u32::MAX);
        if o.value_bytes == 0 {
            ring
        } else {
            o.value_bytes
        }
    });
    (0, bytes)
}

/// Every access that the proof of safety admits: each of an execution is among them, with an effect that is
/// at least its own.
pub(crate) fn at_most(program: &Program, flow: &Flow) -> Vec<Touch> {
    let mut all = Vec::new();
    for step in flow.steps.iter().filter(|s| s.reached) {
        let Op::Plain(insn) = step.op else { continue };
        let mut touch = |object: ObjectId, effect, operation, (from, to)| {
            all.push(Touch {
                object,
                operation,
                effect,
                from,
                to,
                line: step.line.clone(),
            });
        };
        // What a pointer leads to, in whichever objects; all of them where no rule looked at the bytes, as
        // where a record is handed over.
        let mut into = |access: At, effect, operation| {
            let bytes = |id: ObjectId| {
                let known = step.extents.iter().find(|e| e.object == id);
                known.map_or(whole(program, id), |e| (e.from, e.to))
            };
            match access {
                At::Value(id) | At::Record(id) => touch(id, effect, operation, bytes(id)),
                At::Several if step.extents.is_empty() => {
                    for id in (0..program.objects.len()).map(ObjectId) {
                        touch(id, effect, operation, bytes(id));
                    }
                }
                At::Several => {
                    for e in &step.extents {
                        touch(e.object, effect, operation, (e.from, e.to));
                    }
                }
                _ => {}
            }
        };
        match insn {
            Insn::Call { helper: number } => {
                let Some(h) = helper::by_number(number) else {
                    continue;
                };
                for (i, arg) in step.args.iter().enumerate() {
                    if let ArgFact::Memory { access, .. } = arg {
                        let effect = match h.args.get(i) {
                            Some(
                                Arg::Key
                                | Arg::Value
                                | Arg::Read { .. }
                                | Arg::In(_)
                                | Arg::Text
                                | Arg::Any,
                            ) => Effect::Read,
                            _ => Effect::Write,
                        };
                        into(*access, effect, h.name);
                    }
                }
                for arg in &step.args {
                    match arg {
                        ArgFact::Object(id) => {
                            let kind = program.objects.get(id.0).map(|o| o.kind);
                            let effect = kind.map_or(Effect::Write, |k| kinds::at_most(k, h));
                            touch(*id, effect, h.name, whole(program, *id));
                        }
                        ArgFact::Timer(id) => {
                            touch(*id, Effect::Write, h.name, whole(program, *id));
                        }
                        _ => {}
                    }
                }
                if let Some(kind) = helper::implied(h) {
                    let named = program.objects.iter().position(|o| o.kind == kind);
                    if let Some(i) = named {
                        let (id, effect) = (ObjectId(i), kinds::at_most(kind, h));
                        touch(id, effect, h.name, whole(program, id));
                    }
                }
            }
            Insn::Load { .. } => {
                if let Some(access) = step.access {
                    into(access, Effect::Read, "load");
                }
            }
            Insn::Atomic { .. } => {
                if let Some(access) = step.access {
                    into(access, Effect::Write, "atomic");
                }
            }
            Insn::Store { .. } => {
                if let Some(access) = step.access {
                    into(access, Effect::Write, "store");
                }
            }
            _ => {}
        }
    }
    all
}

/// The objects that an entry may change.
pub(crate) fn changed(program: &Program, flow: &Flow) -> BTreeSet<ObjectId> {
    let all = at_most(program, flow).into_iter();
    let changes = all.filter(|t| t.effect != Effect::Read);
    changes.map(|t| t.object).collect()
}

/// Objects that `ON_START` writes and nothing else does.
#[must_use]
pub fn made_at_start(program: &Program, checked: &Checked) -> Vec<ObjectId> {
    let (mut made, mut written) = (BTreeSet::new(), BTreeSet::new());
    for running in checked.running(program) {
        let all = match running.role {
            Role::OnStart => &mut made,
            _ => &mut written,
        };
        all.extend(changed(program, running.flow));
    }
    made.difference(&written).copied().collect()
}

/// One report an object.
pub(crate) fn objects(
    program: &Program,
    checked: &Checked,
    entries: &mut [Entry],
    oracle: &mut Oracle,
) -> Vec<Object> {
    let mut seen: BTreeMap<usize, (Seen, bool)> = BTreeMap::new();
    let mut observed = vec![Observed::default(); program.objects.len()];
    for (entry, running) in entries.iter().zip(checked.running(program)) {
        let start = entry.role == Role::OnStart;
        if entry.outcome.covers() {
            for access in entry.paths.iter().flat_map(|p| &p.accesses) {
                let (s, _) = seen.entry(access.object.0).or_default();
                s.add(access.effect, start);
            }
            // What shows at the start is the same on every core: nothing has changed yet.
            if !start {
                for (all, more) in observed.iter_mut().zip(observe::of(program, entry)) {
                    all.absorb(more);
                }
            }
            continue;
        }
        for touch in at_most(program, running.flow) {
            let (s, approximate) = seen.entry(touch.object.0).or_default();
            s.add(touch.effect, start);
            *approximate = true;
        }
    }
    through_shapes(program, &mut seen);
    (0..program.objects.len())
        .map(|i| {
            let (s, approximate) = seen.get(&i).copied().unwrap_or_default();
            let constant = program.objects.get(i).is_some_and(|o| o.read_only);
            let mut observed = observed.get(i).cloned().unwrap_or_default();
            if approximate {
                // Nothing is known of what depends on it.
                observed.other = true;
            }
            let changed = s.written || s.added;
            let parts = changed
                .then(|| sums::parts(program, entries, oracle, ObjectId(i), &observed))
                .flatten();
            let adds = parts.as_ref().is_some_and(sums::Parts::additive);
            // What has no values to look into: counts of a sketch, bits of a Bloom filter.
            let adds = adds
                || (s.added && !s.written && observed.nothing() && counted(program, entries, i));
            let usage = match s.usage(adds) {
                Use::Unused if constant => Use::ReadOnly,
                other => other,
            };
            Object {
                id: ObjectId(i),
                usage,
                approximate,
                writers: writers::of_object(program, entries, ObjectId(i)),
                parts,
                observed,
            }
        })
        .collect()
}

/// Whether an object has no values, and packets alone add to it: a timer would on every core.
fn counted(program: &Program, entries: &[Entry], object: usize) -> bool {
    let kind = program.objects.get(object).map(|o| o.kind);
    let others = |e: &&Entry| !sums::once(e.role) && e.role != Role::OnStart;
    let mut others = entries.iter().filter(others).flat_map(|e| &e.at_most);
    kind.is_some_and(|k| k.merging() == Some(Merging::Counts))
        && !others.any(|t| t.object.0 == object && t.effect != Effect::Read)
}

/// What happens to a map in a map happens to any that may be in it.
fn through_shapes(program: &Program, seen: &mut BTreeMap<usize, (Seen, bool)>) {
    for (i, shape) in program.objects.iter().enumerate() {
        let Some((s, _)) = seen.get(&i).copied().filter(|_| shape.is_shape()) else {
            continue;
        };
        for (j, _) in program
            .objects
            .iter()
            .enumerate()
            .filter(|o| o.1.fits(shape))
        {
            let (other, approximate) = seen.entry(j).or_default();
            other.absorb(s);
            *approximate = true;
        }
    }
}
