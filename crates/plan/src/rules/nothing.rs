//! Objects that ask for nothing: no packet changes them, or all changes commute and nothing depends on them.

use millrace_model::Model;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_model::model::{Path, Use, Verdict};
use millrace_object::program::StateObject;

use super::Judged;
use crate::plan::{Rule, Treatment};

/// What is done with an object that asks for nothing; none for all others.
pub(crate) fn judge(model: &Model, object: usize, declared: &StateObject) -> Option<Judged> {
    let usage = model.objects.get(object)?.usage;
    let (treatment, reason) = match (usage, declared.kind.name) {
        (Use::Unused, _) => (Treatment::Spread, "nothing touches it"),
        (Use::ReadOnly, _) => (
            Treatment::Spread,
            "packets only read it: every core has a copy",
        ),
        (Use::WrittenAtStart, _) => (
            Treatment::Spread,
            "it is written before the first packet and only read later: every core has a copy",
        ),
        (Use::Additive, _) => (
            Treatment::Merge,
            "packets only add to it and nothing depends on it: every core adds to its own part, and who reads \
             it from outside sees the sum",
        ),
        (Use::ReadWrite, "ringbuf" | "perf_event_array") => (
            Treatment::Merge,
            "packets only put records into it: every core has its own, and who reads sees those of all",
        ),
        (Use::ReadWrite, kind) if kind.starts_with("percpu") && scratch(model, object) => (
            Treatment::Spread,
            "it is per CPU already, and nothing that a packet leaves there decides over another",
        ),
        _ => return None,
    };
    Some(Judged {
        treatment,
        rule: Rule::Nothing,
        reason: reason.to_owned(),
        remedy: None,
        line: None,
        infeasible: false,
    })
}

/// Whether nothing depends on what was in an object before the packet.
fn scratch(model: &Model, object: usize) -> bool {
    let approximate = model.objects.get(object).is_none_or(|o| o.approximate);
    !approximate
        && model.entries.iter().all(|e| {
            let uses = |p: &Path| depends(&e.arena, p, object);
            !e.paths.iter().any(uses)
        })
}

fn depends(arena: &Arena, path: &Path, object: usize) -> bool {
    let mut roots: Vec<ExprId> = path.guard.clone();
    roots.extend(path.rewrites.iter().map(|w| w.byte));
    if let Verdict::Number(e) | Verdict::GoesOn(_, e) = path.verdict {
        roots.push(e);
    }
    for a in &path.accesses {
        roots.extend(&a.key);
        roots.extend(&a.value);
    }
    // Of a per-CPU array every element is there.
    let of = |e: ExprId| match arena.node(e) {
        Node::Sym(s) => {
            let symbol = arena.symbol(*s);
            symbol.origin == Origin::State(object) && !symbol.name.ends_with(".present")
        }
        _ => false,
    };
    cone(arena, &roots, |_| false).into_iter().any(of)
}
