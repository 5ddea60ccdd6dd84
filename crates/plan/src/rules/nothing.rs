//! Objects that ask for nothing: no packet changes them, or all changes commute and nothing depends on them. What depends
//! on an object is the model's to say (`millrace_model::observe`), and what commutes (`millrace_model::sums`).

use millrace_model::Model;
use millrace_model::model::{Object, Use};
use millrace_model::weaken::weak;
use millrace_object::program::StateObject;

use super::Judged;
use crate::plan::{Rule, Treatment};

/// What is done with an object that asks for nothing; none for all others.
pub(crate) fn judge(model: &Model, object: usize, declared: &StateObject) -> Option<Judged> {
    let o = model.objects.get(object)?;
    let kind = declared.kind.name;
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
        Use::ReadWrite if is_records(kind) && only_records(model, o) => (
            Treatment::Merge,
            "packets only put records into it: every core has its own, and who reads sees those of all",
        ),
        Use::ReadWrite if kind.contains("percpu") => match &o.parts {
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

/// Whether objects of this kind take records that the host reads.
pub(crate) fn is_records(kind: &str) -> bool {
    matches!(kind, "ringbuf" | "perf_event_array")
}

/// Calls that put a record into a ring, and what fills one in.
const RECORDS: [&str; 8] = [
    "ringbuf_output",
    "ringbuf_reserve",
    "ringbuf_submit",
    "ringbuf_discard",
    "perf_event_output",
    "load",
    "store",
    "atomic",
];

/// Whether packets see nothing of a ring but whether it had room, which is a capacity of each core's own.
fn only_records(model: &Model, o: &Object) -> bool {
    if weak("nothing-records") {
        return true;
    }
    if o.approximate {
        let mut all = model.entries.iter().flat_map(|e| &e.at_most);
        return all.all(|t| t.object != o.id || RECORDS.contains(&t.operation));
    }
    let seen = &o.observed;
    seen.bits.is_empty() && !seen.presence && !seen.other
}
