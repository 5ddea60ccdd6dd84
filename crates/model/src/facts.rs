//! How objects are used, from the paths where they are all, else from what the proof of safety saw: every
//! access of every execution, without its key.

use std::collections::BTreeMap;

use millrace_check::Checked;
use millrace_check::facts::{Access as Touch, ArgFact, Op};
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::{ObjectId, Program, Role};

use crate::expr::walk::cone;
use crate::expr::{Bin, ExprId, Node, Origin};
use crate::kinds;
use crate::model::{Effect, Entry, Object, Outcome, Use, Verdict};

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

/// One report an object.
pub(crate) fn objects(program: &Program, checked: &Checked, entries: &[Entry]) -> Vec<Object> {
    let mut seen: BTreeMap<usize, (Seen, bool)> = BTreeMap::new();
    for (entry, flow) in entries.iter().zip(&checked.flows) {
        let start = entry.role == Role::OnStart;
        if entry.outcome == Outcome::Exhaustive {
            followed(entry, start, &mut seen);
            continue;
        }
        for step in flow.steps.iter().filter(|s| s.reached) {
            let touch = |object: ObjectId, effect, seen: &mut BTreeMap<usize, (Seen, bool)>| {
                let (s, approximate) = seen.entry(object.0).or_default();
                s.add(effect, start);
                // Nothing is known of what depends on it.
                s.decisive = true;
                *approximate = true;
            };
            let Op::Plain(insn) = step.op else { continue };
            if let Insn::Call { helper: number } = insn {
                let name = helper::by_number(number).map_or("", |h| h.name);
                for arg in &step.args {
                    match arg {
                        ArgFact::Object(id) => {
                            let kind = program.objects.get(id.0).map_or("", |o| o.kind.name);
                            touch(*id, kinds::at_most(kind, name), &mut seen);
                        }
                        // A helper may write to what it is handed.
                        ArgFact::Memory {
                            access: Touch::Value(id),
                            ..
                        } => {
                            touch(*id, Effect::Write, &mut seen);
                        }
                        _ => {}
                    }
                }
            }
            let effect = match insn {
                Insn::Load { .. } => Effect::Read,
                Insn::Atomic { .. } | Insn::Store { .. } => Effect::Write,
                _ => continue,
            };
            match step.access {
                Some(Touch::Value(id) | Touch::Record(id)) => touch(id, effect, &mut seen),
                // It may be any object's.
                Some(Touch::Several) => {
                    for i in 0..program.objects.len() {
                        touch(ObjectId(i), effect, &mut seen);
                    }
                }
                _ => {}
            }
        }
    }
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
            }
        })
        .collect()
}

fn followed(entry: &Entry, start: bool, seen: &mut BTreeMap<usize, (Seen, bool)>) {
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
        if let Verdict::Number(e) = path.verdict {
            depends(&[e], None);
        }
        for access in &path.accesses {
            depends(&access.key, None);
            depends(&access.value, Some(access.object.0));
        }
    }
    for access in entry.paths.iter().flat_map(|p| &p.accesses) {
        let added = access.effect == Effect::Write
            && access.operation == "store"
            && adds(entry, &access.value);
        let effect = if added { Effect::Add } else { access.effect };
        seen.entry(access.object.0)
            .or_default()
            .0
            .add(effect, start);
    }
}

/// Whether what is stored is what was there and something more, that does not depend on state.
fn adds(entry: &Entry, value: &[ExprId]) -> bool {
    let a = &entry.arena;
    // All bytes of one sum.
    let whole = match value.first().map(|e| a.node(*e)) {
        Some(Node::Extract { of, low: 0 }) => *of,
        _ => return false,
    };
    let is_part = |(i, e): (usize, &ExprId)| matches!(a.node(*e), Node::Extract { of, low } if *of == whole && *low as usize == 8 * i);
    if !value.iter().enumerate().all(is_part) {
        return false;
    }
    let Node::Bin(Bin::Add, x, y) = *a.node(whole) else {
        return false;
    };
    let state = |e: ExprId| {
        cone(a, &[e], |_| false).into_iter().any(
            |id| matches!(a.node(id), Node::Sym(s) if matches!(a.symbol(*s).origin, Origin::State(_))),
        )
    };
    let plain = |e: ExprId| match a.node(e) {
        Node::Sym(s) => matches!(a.symbol(*s).origin, Origin::State(_)),
        Node::Extract { of, .. } => matches!(a.node(*of), Node::Sym(_)) && state(*of),
        _ => false,
    };
    (plain(x) && !state(y)) || (plain(y) && !state(x))
}
