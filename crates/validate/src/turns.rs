//! Paths through loops that are taken for any number of turns: which of their symbols an execution settles, and
//! whether it is of such a path.
//!
//! What a loop leaves is any number, so conditions and values that speak of it say nothing here; the others are
//! held against the execution as those of any path are. Accesses are matched as a pattern: where the path has
//! some that are repeated, the execution has any of them, any number of times.

use std::collections::BTreeSet;

use millrace_check::reference::Log;
use millrace_model::exec::{Access, Target};
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::{Arena, ExprId, Node, Origin, SymId, walk::cone};
use millrace_model::model::{Effect, Path, Verdict};
use millrace_object::program::ObjectId;

use crate::pair::Happened;
use crate::predict::{Disagreement, Prediction, outcome};
use crate::stands::Stands;

/// Whether a path goes through such a loop.
#[must_use]
pub(crate) fn has_turns(path: &Path) -> bool {
    path.accesses.iter().any(|a| a.repeated)
}

/// The symbols of a path through loops that an execution settles: what comes in, and what is under keys that are made
/// of settled symbols alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settled(BTreeSet<SymId>);

impl Settled {
    /// Of a path whose symbols stand for this; `base` are those that come in.
    pub(crate) fn of(
        arena: &Arena,
        path: &Path,
        base: &[SymId],
        symbols: &[(SymId, Stands)],
    ) -> Self {
        let mut settled = Settled(base.iter().copied().collect());
        for (i, place) in path.places.iter().enumerate() {
            if place.turned || !settled.all(arena, &place.key) {
                continue;
            }
            let own = symbols.iter().filter(|(_, stands)| {
                matches!(stands, Stands::Present(p) | Stands::Full(p) | Stands::Bytes(p, ..)
                    if *p == i)
            });
            settled.0.extend(own.map(|(s, _)| *s));
        }
        settled
    }

    /// Whether expressions are made of settled symbols alone.
    pub(crate) fn all(&self, arena: &Arena, roots: &[ExprId]) -> bool {
        cone(arena, roots, |_| false).into_iter().all(|e| {
            let Node::Sym(s) = arena.node(e) else {
                return true;
            };
            arena.symbol(*s).origin != Origin::Turn && self.0.contains(s)
        })
    }
}

/// Leaves of what a path says that happens only what is settled.
pub(crate) fn settle(
    arena: &Arena,
    path: &Path,
    settled: &Settled,
    predicted: &mut Prediction,
    happened: &Happened,
) {
    let target: &[ExprId] = match &path.target {
        Some(Target::Interface(e)) => std::slice::from_ref(e),
        Some(Target::Entry(_, key)) => key,
        _ => &[],
    };
    let verdict = match path.verdict {
        Verdict::Number(e) | Verdict::GoesOn(_, e) => vec![e],
        Verdict::None => Vec::new(),
    };
    if !settled.all(arena, target) || !settled.all(arena, &verdict) {
        predicted.fates.clear();
        predicted.goes_on = happened.log.went_on.first().copied();
    }
    let borders = [path.borders.start, path.borders.end];
    let open = path.rewrites.iter().any(|w| {
        let at: Vec<ExprId> = w.base.into_iter().collect();
        !settled.all(arena, &at) || !settled.all(arena, &[w.byte])
    });
    if open || !settled.all(arena, &borders) {
        predicted.packet = None;
    }
    predicted.written = written(path);
    predicted.accesses.clear();
    predicted.entries.clear();
}

/// Whether the accesses of an execution are of a path's pattern.
pub(crate) fn fits(
    arena: &Arena,
    path: &Path,
    settled: &Settled,
    under: &Assignment,
    log: &Log,
) -> Option<Disagreement> {
    let bytes = |all: &[ExprId]| -> Option<Vec<u8>> {
        let known = settled.all(arena, all);
        known.then(|| all.iter().map(|e| under.value(arena, *e) as u8).collect())
    };
    let pattern: Vec<_> = (path.accesses.iter())
        .map(|a| (a, bytes(&a.key), bytes(&a.value)))
        .collect();
    let whole = !matches!(path.verdict, Verdict::GoesOn(..));
    // The places in the pattern that the accesses so far can have led to.
    let mut at: BTreeSet<usize> = BTreeSet::from([0]);
    let skip = |at: &mut BTreeSet<usize>| {
        let mut todo: Vec<usize> = at.iter().copied().collect();
        while let Some(i) = todo.pop() {
            if path.accesses.get(i).is_some_and(|a| a.repeated) && at.insert(i + 1) {
                todo.push(i + 1);
            }
        }
    };
    skip(&mut at);
    for (n, t) in log.touches.iter().enumerate() {
        let came = outcome(t.operation, &t.key, t.there, t.result);
        let is = |(a, key, value): &(&Access, Option<Vec<u8>>, Option<Vec<u8>>)| {
            let refused = a
                .outcome
                .is_some_and(|o| o == "beyond the last" || o.starts_with("refused"));
            (a.object, a.operation, a.offset) == (t.object, t.operation, t.offset)
                && (a.outcome == came || (came == Some("full") && refused))
                && key.as_ref().is_none_or(|k| *k == t.key)
                && value.as_ref().is_none_or(|v| *v == t.value)
        };
        let mut next = BTreeSet::new();
        for i in &at {
            let Some(step) = pattern.get(*i).filter(|p| is(p)) else {
                continue;
            };
            if !step.0.repeated {
                next.insert(i + 1);
                continue;
            }
            // Any of those that stand beside it may come next.
            let first = (0..*i).rev().take_while(|j| repeated(path, *j)).last();
            next.insert(first.unwrap_or(*i));
        }
        skip(&mut next);
        if next.is_empty() {
            let done = !whole && at.contains(&pattern.len());
            return (!done).then(|| Disagreement {
                what: "access",
                predicted: format!("access {} is one of the path's", n + 1),
                happened: format!("{} of object {}", t.operation, t.object.0),
            });
        }
        at = next;
    }
    (!at.contains(&pattern.len())).then(|| Disagreement {
        what: "access",
        predicted: "the path's last accesses".to_owned(),
        happened: format!("{} accesses", log.touches.len()),
    })
}

fn repeated(path: &Path, at: usize) -> bool {
    path.accesses.get(at).is_some_and(|a| a.repeated)
}

/// The objects that a path writes to; those that it does not are as before.
fn written(path: &Path) -> BTreeSet<ObjectId> {
    let writes = |a: &&Access| a.effect != Effect::Read;
    let all = path.accesses.iter().filter(writes);
    all.map(|a| a.object).collect()
}
