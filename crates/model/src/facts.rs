//! How objects are used, from the paths where they are all, else from what the proof of safety saw: every
//! access of every execution, without its key.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::Checked;
use millrace_check::facts::{Access as At, ArgFact, Flow, Op};
use millrace_object::helper::{self, Arg};
use millrace_object::insn::Insn;
use millrace_object::program::{ObjectId, Program, Role};

use crate::exec::Access;
use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node, Origin};
use crate::model::{Effect, Entry, Object, Touch, Use, Verdict};
use crate::{kinds, writers};

/// What may happen to an object.
#[derive(Clone, Copy, Default)]
struct Seen {
    read: bool,
    added: bool,
    written: bool,
    written_at_start: bool,
    /// something depends on what it holds
    decisive: bool,
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
        self.decisive |= other.decisive;
    }

    fn usage(self) -> Use {
        if self.written || (self.added && self.decisive) {
            Use::ReadWrite
        } else if self.added {
            Use::Additive
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
                            let kind = program.objects.get(id.0).map_or("", |o| o.kind.name);
                            touch(
                                *id,
                                kinds::at_most(kind, h.name),
                                h.name,
                                whole(program, *id),
                            );
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
                        let (id, effect) = (ObjectId(i), kinds::at_most(kind.name, h.name));
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

/// One report an object.
pub(crate) fn objects(program: &Program, checked: &Checked, entries: &[Entry]) -> Vec<Object> {
    let mut seen: BTreeMap<usize, (Seen, bool)> = BTreeMap::new();
    for (entry, running) in entries.iter().zip(checked.running(program)) {
        let start = entry.role == Role::OnStart;
        if entry.outcome.covers() {
            followed(program, entry, start, &mut seen);
            continue;
        }
        for touch in at_most(program, running.flow) {
            let (s, approximate) = seen.entry(touch.object.0).or_default();
            s.add(touch.effect, start);
            // Nothing is known of what depends on it.
            s.decisive = true;
            *approximate = true;
        }
    }
    through_shapes(program, &mut seen);
    (0..program.objects.len())
        .map(|i| {
            let (s, approximate) = seen.get(&i).copied().unwrap_or_default();
            let constant = program.objects.get(i).is_some_and(|o| o.read_only);
            let usage = match s.usage() {
                Use::Unused if constant => Use::ReadOnly,
                other => other,
            };
            Object {
                id: ObjectId(i),
                usage,
                approximate,
                writers: writers::of_object(program, entries, ObjectId(i)),
            }
        })
        .collect()
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

fn followed(
    program: &Program,
    entry: &Entry,
    start: bool,
    seen: &mut BTreeMap<usize, (Seen, bool)>,
) {
    let a = &entry.arena;
    let mut depends = |roots: &[ExprId], but: Option<usize>| {
        for id in cone(a, roots, |_| false) {
            if let Node::Sym(s) = a.node(id)
                && let Origin::State(object) = a.symbol(*s).origin
                && Some(object) != but
            {
                seen.entry(object).or_default().0.decisive = true;
            }
        }
    };
    for path in &entry.paths {
        // That an entry is there or not is no number that is added to.
        let guard: Vec<ExprId> = path.guard.clone();
        depends(&guard, None);
        depends(
            &path.rewrites.iter().map(|w| w.byte).collect::<Vec<_>>(),
            None,
        );
        if let Verdict::Number(e) | Verdict::GoesOn(_, e) = path.verdict {
            depends(&[e], None);
        }
        for access in &path.accesses {
            depends(&access.key, None);
            depends(&access.value, Some(access.object.0));
        }
    }
    let mut scratch = None;
    for access in entry.paths.iter().flat_map(|p| &p.accesses) {
        let added = access.effect == Effect::Write
            && access.operation == "store"
            && adds(
                entry,
                access,
                program.objects.get(access.object.0).map_or("", |o| &o.name),
                &mut scratch,
            );
        let effect = if added { Effect::Add } else { access.effect };
        let (s, _) = seen.entry(access.object.0).or_default();
        s.add(effect, start);
        // What a loop leaves depends on all that it reads.
        s.decisive |= access.repeated;
    }
}
/// Whether what is stored is what was there, at this very place, and something more that does not depend on state.
/// `scratch` has the entry's expressions once it was needed.
fn adds(entry: &Entry, access: &Access, name: &str, scratch: &mut Option<Arena>) -> bool {
    let a = &entry.arena;
    // An addition's lowest byte is an addition of lowest bytes; the next one tells the whole.
    let whole = match access.value.as_slice() {
        [only] => *only,
        [_, second, ..] => match a.node(*second) {
            Node::Extract { of, low: 8 } => *of,
            _ => return false,
        },
        [] => return false,
    };
    let Node::Bin(Bin::Add, x, y) = *a.node(whole) else {
        return false;
    };
    let state = |e: ExprId| {
        cone(a, &[e], |_| false).into_iter().any(
            |id| matches!(a.node(id), Node::Sym(s) if matches!(a.symbol(*s).origin, Origin::State(_))),
        )
    };
    let bits = 8 * access.value.len() as u32;
    let before = |e: ExprId| was_there(a, access, name, e) && a.width(e) == bits;
    let more = |e: ExprId, by: ExprId| before(e) && !state(by);
    if !more(x, y) && !more(y, x) {
        return false;
    }
    let scratch = scratch.get_or_insert_with(|| a.clone());
    let mut bytes = (0..).zip(&access.value);
    bytes.all(|(i, byte)| scratch.extract(whole, 8 * i, 8) == *byte)
}

/// Whether an expression is what an access's place held before the packet: words of values are symbols called by their
/// entry and their bytes (exec/memory.rs).
fn was_there(a: &Arena, access: &Access, name: &str, e: ExprId) -> bool {
    let Some(offset) = access.offset else {
        return false;
    };
    let (symbol, low) = match a.node(e) {
        Node::Sym(s) => (*s, 0),
        Node::Extract { of, low } => match a.node(*of) {
            Node::Sym(s) => (*s, *low),
            _ => return false,
        },
        _ => return false,
    };
    let from = offset / 8 * 8;
    let symbol = a.symbol(symbol);
    let place = format!("{name}#{}[{from}..", access.entry);
    let single = format!("{name}[{from}..");
    symbol.origin == Origin::State(access.object.0)
        && low == 8 * (offset - from)
        && (symbol.name.starts_with(&place)
            || (access.entry == 0 && symbol.name.starts_with(&single)))
}
