//! Objects that ask for nothing: no packet changes them, or all changes commute and nothing depends on them. What depends
//! on an object is the model's to say (`millrace_model::observe`), and what commutes (`millrace_model::sums`).

use millrace_model::Model;
use millrace_model::model::{Object, Use};
use millrace_model::weaken::weak;
use millrace_object::program::StateObject;
use millrace_object::state::StateKind;

use super::Judged;
use crate::plan::Rule;
use millrace_place::Treatment;

/// What is done with an object that asks for nothing; none for all others.
pub(crate) fn judge(model: &Model, object: usize, declared: &StateObject) -> Option<Judged> {
    let o = model.objects.get(object)?;
    let kind = declared.kind;
    let inserts = o.parts.as_ref().is_some_and(|p| p.inserts);
    let (treatment, reason) = match o.usage {
        Use::Unused => (Treatment::Spread, "nothing touches it"),
        Use::ReadOnly => (
            Treatment::Spread,
            "packets only read it: every core has a copy",
        ),
        Use::WrittenAtStart => (
            Treatment::Spread,
            "it is written before the first packet and only read later: every core has a copy",
        ),
        Use::Additive if inserts => (
            Treatment::Merge,
            "packets only add to its numbers, and make entries to add to; nothing depends on either: every core \
             has its own entries, and who reads them from outside sees the sums",
        ),
        Use::Additive => (
            Treatment::Merge,
            "packets only add to it and nothing depends on it: every core adds to its own part, and who reads \
             it from outside sees the sum",
        ),
        Use::ReadWrite if kind.holds_records() && only_records(model, o, kind) => (
            Treatment::Merge,
            "packets only put records into it: every core has its own, and who reads sees those of all",
        ),
        Use::ReadWrite if kind.per_cpu => match &o.parts {
            Some(parts) if parts.words.is_empty() => (
                Treatment::Spread,
                "it is per CPU already, and nothing that a packet leaves there decides over another",
            ),
            Some(_) => (
                Treatment::Merge,
                "it is per CPU already, and nothing that a packet leaves there decides over another; numbers that \
                 packets only add to are summed",
            ),
            None if weak("nothing-percpu") => (Treatment::Spread, "a rule is switched off"),
            None => return None,
        },
        Use::ReadWrite => return None,
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

/// Operations that fill in a record that a call has reserved.
const FILLS: [&str; 3] = ["load", "store", "atomic"];

/// Whether packets see nothing of a ring but whether it had room, which is a capacity of each core's own.
fn only_records(model: &Model, o: &Object, kind: &StateKind) -> bool {
    if weak("nothing-records") {
        return true;
    }
    if o.approximate {
        let calls = || kind.calls.iter().copied().flatten();
        let puts = |operation| calls().any(|c| c.helper.name == operation && !c.does.looks());
        let mut all = model.entries.iter().flat_map(|e| &e.at_most);
        return all.all(|t| t.object != o.id || FILLS.contains(&t.operation) || puts(t.operation));
    }
    let seen = &o.observed;
    seen.bits.is_empty() && !seen.presence && !seen.other
}
