//! Paths through loops that are taken for any number of turns: which of their symbols an execution settles, and
//! whether it is of such a path.
//!
//! What a loop leaves is any number, so conditions and values that speak of it say nothing here; the others are
//! held against the execution as those of any path are. Accesses are matched as a pattern: where the path has
//! some that are repeated, the execution has any of them, any number of times.

use std::collections::{BTreeSet, HashMap};

use millrace_model::exec::{Access, Target};
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::{Arena, ExprId, Node, Origin, SymId, walk::cone};
use millrace_model::model::{Effect, Path, Verdict};
use millrace_object::program::ObjectId;
use millrace_reference::{Log, Touch};

use crate::pair::Happened;
use crate::predict::{Disagreement, Prediction, outcome};
use crate::stands::Stands;

/// Whether a path goes through such a loop, or visits the entries of a table: which of them is in which place no key says.
#[must_use]
pub(crate) fn has_turns(path: &Path) -> bool {
    path.loose.is_some() || path.accesses.iter().any(is_visit)
}

/// A look at a place of a table. Executions report what is done to the entries that are found, and not the looks.
fn is_visit(a: &Access) -> bool {
    a.operation == "map_slot"
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
        Verdict::None | Verdict::Onward(_) => Vec::new(),
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

/// Kind of an access: what is touched, how, which bytes, and the result.
pub(crate) type Sort = (ObjectId, &'static str, Option<u32>, Option<&'static str>);

/// The sort of an access.
pub(crate) fn sort(t: &Touch) -> Sort {
    let came = outcome(t.operation, &t.key, t.there, t.result);
    (t.object, t.operation, t.offset, came)
}

/// Whether an access of a path is of this sort.
pub(crate) fn is_of(a: &Access, (object, operation, offset, came): Sort) -> bool {
    let refused = a
        .outcome
        .is_some_and(|o| o == "beyond the last" || o.starts_with("refused"));
    let there = match (a.chosen, a.offset, offset) {
        (Some(_), Some(first), Some(at)) => (first..first + a.bytes).contains(&at),
        _ => a.offset == offset,
    };
    (a.object, a.operation) == (object, operation)
        && there
        && (a.outcome == came || (came == Some("full") && refused))
}

/// The accesses of an execution. A loop has tens of thousands, of few sorts and with few keys: all are numbered, and
/// hundreds of paths are held against numbers.
pub(crate) struct Seen<'a> {
    /// in order; sort, key, value
    touches: Vec<[usize; 3]>,
    sorts: Vec<Sort>,
    /// numbers of keys and values
    words: HashMap<&'a [u8], usize>,
}

impl<'a> Seen<'a> {
    /// All of a log.
    pub(crate) fn of(log: &'a Log) -> Self {
        let mut numbers: HashMap<Sort, usize> = HashMap::new();
        let mut sorts = Vec::new();
        let mut words: HashMap<&[u8], usize> = HashMap::new();
        let mut word = |bytes: &'a Vec<u8>| {
            let next = words.len();
            *words.entry(bytes.as_slice()).or_insert(next)
        };
        let mut number = |t: &'a Touch| {
            let sort = sort(t);
            let number = *numbers.entry(sort).or_insert(sorts.len());
            if number == sorts.len() {
                sorts.push(sort);
            }
            [number, word(&t.key), word(&t.value)]
        };
        let touches = log.touches.iter().map(&mut number).collect();
        Self {
            touches,
            sorts,
            words,
        }
    }
}

/// Whether the accesses of an execution are of a path's pattern.
pub(crate) fn fits(
    arena: &Arena,
    path: &Path,
    settled: &Settled,
    under: &Assignment,
    seen: &Seen<'_>,
) -> Option<Disagreement> {
    // The number of a key or value that is settled; one that the execution has nowhere has none.
    let bytes = |all: &[ExprId]| -> Option<usize> {
        settled.all(arena, all).then(|| {
            let bytes: Vec<u8> = all.iter().map(|e| under.value(arena, *e) as u8).collect();
            let number = seen.words.get(bytes.as_slice());
            number.copied().unwrap_or(usize::MAX)
        })
    };
    let pattern: Vec<_> = (path.accesses.iter())
        .map(|a| {
            let written = if a.chosen.is_some() {
                None
            } else {
                bytes(&a.value)
            };
            (bytes(&a.key), written)
        })
        .collect();
    // The steps of the pattern that are of each sort.
    let of_sort: Vec<Vec<usize>> = (seen.sorts.iter())
        .map(|sort| {
            let steps = path.accesses.iter().enumerate();
            let steps = steps.filter(|(_, a)| is_of(a, *sort));
            steps.map(|(i, _)| i).collect()
        })
        .collect();
    let leads: Vec<Places> = (0..pattern.len())
        .map(|i| match repeated(path, i) {
            false => Places::from(path, i + 1),
            // Any of those that stand beside it may come next.
            true => {
                let first = (0..i).rev().take_while(|j| repeated(path, *j)).last();
                Places::from(path, first.unwrap_or(i))
            }
        })
        .collect();
    let whole = !matches!(path.verdict, Verdict::GoesOn(..));
    // The places in the pattern that the accesses so far can have led to.
    let mut at = Places::from(path, 0);
    for (n, [sort, key, value]) in seen.touches.iter().enumerate() {
        let is = |step: &(Option<usize>, Option<usize>)| {
            step.0.is_none_or(|k| k == *key) && step.1.is_none_or(|v| v == *value)
        };
        let mut next = Places::none(path);
        let steps = of_sort.get(*sort).into_iter().flatten();
        for i in steps.filter(|i| at.has(**i)) {
            if let (Some(step), Some(lead)) = (pattern.get(*i), leads.get(*i))
                && is(step)
            {
                next.add(lead);
            }
        }
        if next.is_empty() {
            let done = !whole && at.has(pattern.len());
            return (!done).then(|| Disagreement {
                what: "access",
                predicted: format!("access {} is one of the path's", n + 1),
                happened: seen
                    .sorts
                    .get(*sort)
                    .map_or_else(String::new, |s| format!("{} of object {}", s.1, s.0.0)),
            });
        }
        at = next;
    }
    (!at.has(pattern.len())).then(|| Disagreement {
        what: "access",
        predicted: "the path's last accesses".to_owned(),
        happened: format!("{} accesses", seen.touches.len()),
    })
}

/// Places in a path's pattern of accesses, the one behind the last among them.
#[derive(Clone)]
struct Places(Vec<u64>);

impl Places {
    fn none(path: &Path) -> Self {
        Self(vec![0; path.accesses.len() / 64 + 1])
    }

    /// A place, and those behind it that are reached without an access.
    fn from(path: &Path, mut at: usize) -> Self {
        let mut all = Self::none(path);
        loop {
            if let Some(word) = all.0.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
            if !repeated(path, at) {
                return all;
            }
            at += 1;
        }
    }

    fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|w| w >> (at % 64) & 1 == 1)
    }

    fn add(&mut self, other: &Self) {
        for (mine, also) in self.0.iter_mut().zip(&other.0) {
            *mine |= also;
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }
}

fn repeated(path: &Path, at: usize) -> bool {
    let a = path.accesses.get(at);
    a.is_some_and(|a| a.repeated || is_visit(a))
}

/// The objects that a path writes to; those that it does not are as before.
fn written(path: &Path) -> BTreeSet<ObjectId> {
    let writes = |a: &&Access| a.effect != Effect::Read;
    let all = path.accesses.iter().filter(writes);
    all.map(|a| a.object).collect()
}
