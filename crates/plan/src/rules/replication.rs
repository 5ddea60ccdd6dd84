//! R7, replication: each core has all of an object and repeats what packets of other cores do to it from their rows, the few
//! bytes of a packet that reach state (`millrace_history`; Xu et al., "State-Compute Replication", which transforms programs by hand). It asks nothing of the steering:
//! any packet goes to any core. All objects of a program are replicated or none, since a row says of a packet what it does to all
//! of them.

use millrace_history::effects::replicated;
use millrace_history::{History, Refusal};
use millrace_object::program::{ObjectId, Program};

use super::Said;
use crate::plan::Rule;
use crate::words::place;

/// Why an object cannot be replicated, if it cannot.
pub(crate) fn bar(
    history: Option<&History>,
    program: &Program,
    object: ObjectId,
) -> Option<String> {
    let Some(history) = history else {
        return Some("nothing is known of what of a packet reaches state".to_owned());
    };
    let name = program.objects.get(object.0).map(|o| o.name.as_str());
    let mut all = history.refusals.iter();
    let own = all.find(|r| r.object.as_deref() == name);
    if let Some(refusal) = own.or(history.refusals.first()) {
        return Some(refused(refusal));
    }
    if !replicated(program, object) {
        return Some("each core has one of its own anyway".to_owned());
    }
    None
}

/// A refusal with its place.
pub(crate) fn refused(refusal: &Refusal) -> String {
    let line = refusal.line.as_ref();
    let line = line.map_or_else(String::new, |l| format!("{}: ", place(l)));
    let of = refusal.object.as_deref();
    let of = of.map_or_else(String::new, |o| format!("{o}: "));
    format!("{line}{of}{}", refusal.reason)
}

/// The reason where it is replicated.
pub(crate) fn said(history: &History) -> Said {
    let line = history.fields.iter().find_map(|f| f.line.as_ref());
    Said::new(
        Rule::R7,
        format!(
            "every core has all of it, and repeats what packets of the others do to it: {}",
            row(history)
        ),
        line.map(place),
    )
}

/// What a row is, in words.
pub(crate) fn row(history: &History) -> String {
    let time = match history.time_bits {
        0 => String::new(),
        bits => format!(", {bits} of them the time"),
    };
    format!(
        "{} bits of a packet reach state{time}, a row of {} bytes",
        history.bits, history.bytes
    )
}
