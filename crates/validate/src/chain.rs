//! Entries whose paths are cut where they meet: an execution takes a sequence of paths, each behind the cut at which the
//! one before it ends, and the last ends with its verdict.
//!
//! What such a path says of state is said of what the packet finds when it comes there, and what goes on from one to the
//! next is any number. So an execution is held against what does not speak of either: the conditions on the packet, the
//! port, time and parameters, which entry is touched in which order and how, keys that are made of the packet, and the
//! verdict. That some sequence fits is what the cut promises: that every execution is among its paths.

use std::collections::{BTreeMap, BTreeSet};

use millrace_dataplane::packet::Fate;
use millrace_model::exec::Access;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::{ExprId, walk::cone};
use millrace_model::model::{Path, Verdict};
use millrace_object::program::{Dialect, Program};

use crate::chart::Chart;
use crate::judge::Judged;
use crate::pair::{self, Happened};
use crate::trial::{Trial, takes_packets};
use crate::turns::{is_of, sort};

/// Where an execution can be: behind which cut, after how many accesses.
type At = (u32, usize);

/// `XDP_REDIRECT`, whose target state may decide
const REDIRECT: u32 = 4;

/// Whether an entry's paths are cut.
#[must_use]
pub(crate) fn is_cut(paths: &[Path]) -> bool {
    paths.iter().any(|p| p.segment != 0)
}

/// Holds an execution against an entry whose paths are cut. `base` is what comes in.
#[must_use]
pub(crate) fn judge(
    program: &Program,
    chart: &Chart<'_>,
    (trial, base): (&Trial, &Assignment),
    happened: &Happened,
) -> Judged {
    let arena = &chart.entry.arena;
    let touches = &happened.log.touches;
    let plain = |all: &[ExprId]| {
        let leaf = |e: ExprId| chart.is_plain(e);
        cone(arena, all, |_| false).into_iter().all(leaf)
    };
    let mut behind: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, path) in chart.entry.paths.iter().enumerate() {
        let here = chart.charted.get(i).is_some_and(|c| c.holds(arena, base));
        if here {
            behind.entry(path.segment).or_default().push(i);
        }
    }
    let fits = |access: &Access, n: usize| {
        let Some(t) = touches.get(n) else {
            return false;
        };
        let key = || {
            let key: Vec<u8> = { access.key.iter() }
                .map(|e| base.value(arena, *e) as u8)
                .collect();
            key.is_empty() || t.key.is_empty() || key == t.key
        };
        is_of(access, sort(t)) && (!plain(&access.key) || key())
    };
    let ends = |path: &Path, n: usize| match path.verdict {
        Verdict::GoesOn(array, _) => happened.log.went_on.first().is_some_and(|w| w.0 == array),
        Verdict::Onward(_) => false,
        Verdict::None => n == touches.len(),
        Verdict::Number(e) => {
            let whole = n == touches.len() && happened.log.went_on.is_empty();
            let known = takes_packets(chart.entry.role) && plain(&[e]);
            let verdict = base.value(arena, e) as u32;
            let is = || match program.dialect {
                Dialect::Handlers => Fate::of_verdict(verdict) == happened.fate,
                // Where it leads is another question.
                Dialect::Xdp if verdict == REDIRECT => true,
                Dialect::Xdp => pair::xdp(verdict, trial.port, None) == happened.fate,
            };
            whole && (!known || is())
        }
    };
    // From where an execution came to where it can be, and the sequence that ended.
    let mut from: BTreeMap<At, (At, usize)> = BTreeMap::new();
    let mut seen: BTreeSet<At> = BTreeSet::from([(0, 0)]);
    let mut todo = vec![(0, 0)];
    while let Some((segment, n)) = todo.pop() {
        for i in behind.get(&segment).into_iter().flatten() {
            let Some(path) = chart.entry.paths.get(*i) else {
                continue;
            };
            let mut next = n;
            let all = path.accesses.iter().all(|a| {
                let fits = fits(a, next);
                next += usize::from(fits);
                fits
            });
            if !all {
                continue;
            }
            if ends(path, next) {
                let mut others = Vec::new();
                let mut at = (segment, n);
                while let Some((before, path)) = from.get(&at) {
                    others.push(*path);
                    at = *before;
                }
                return Judged {
                    path: Some(*i),
                    others,
                    ..Judged::default()
                };
            }
            if let Verdict::Onward(cut) = path.verdict
                && seen.insert((cut, next))
            {
                from.insert((cut, next), ((segment, n), *i));
                todo.push((cut, next));
            }
        }
    }
    Judged {
        outside: true,
        ..Judged::default()
    }
}
