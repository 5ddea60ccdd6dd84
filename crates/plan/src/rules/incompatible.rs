//! R4, incompatible dependencies: the key is nothing by which packets can be separated.

use std::collections::BTreeSet;

use millrace_model::Model;
use millrace_object::program::Program;

use super::{Barred, Said};
use crate::computed::Exact;
use crate::plan::Rule;
use crate::touch::{At, OTHER, Source, Touch};

fn judged(reason: String, remedy: &str, line: Option<String>) -> Barred {
    Said::new(Rule::R4, reason, line).barred(remedy, true)
}

/// A kind of object of which all packets touch the same place.
pub(crate) fn kind(name: &str, kind: &str) -> Barred {
    judged(
        format!("{name} is a {kind}, which has one order for all packets"),
        "use a map whose key is fields of the packet",
        None,
    )
}

/// Records for the host, where packets are told how many there are.
pub(crate) fn records(name: &str) -> Barred {
    judged(
        format!("packets ask how full {name} is, or for its position"),
        "ask for neither: the call that puts a record says whether there was room for it",
        None,
    )
}

/// A timer, or the end, touches it.
pub(crate) fn timer(model: &Model, name: &str, at: At) -> Barred {
    let entry = model.entries.get(at.entry);
    let function = entry.map_or(String::new(), |e| e.function.clone());
    judged(
        format!(
            "{name} is touched by {function}, which no packet starts, so that no steering brings it to an entry's core"
        ),
        "keep what packets write apart from what timers do: with `.expire_after` entries age without a timer",
        at.place(model),
    )
}

/// An object whose key is read from one that is not separated itself.
pub(crate) fn relying(name: &str, from: &str, line: Option<String>) -> Barred {
    judged(
        format!(
            "the key of {name} is read from {from}, which is not sharded, so the packet does not say which entry it \
             touches"
        ),
        &format!("what makes {from} shard makes {name} shard"),
        line,
    )
}

/// The first access whose key cannot be steered by, if there is one.
pub(crate) fn access(
    model: &Model,
    program: &Program,
    name: &str,
    touches: &[&Touch],
) -> Option<Barred> {
    let bad = |t: &&&Touch| t.any(|s| *s != Source::Fields);
    // Of what is wrong the first in the source.
    let line = |t: &&&Touch| t.at.spot(model);
    let constant = |t: &&&Touch| t.by.iter().all(|f| f.source == Source::Constant);
    let all = touches.iter().all(|t| constant(&t));
    // Where the key of some packets alone is constant, that of others says more.
    let other = touches.iter().filter(|t| bad(t) && !constant(t));
    let t = other.min_by_key(line);
    let t = t.or(touches.iter().filter(bad).min_by_key(line))?;
    let at = t.at.place(model);
    let mut sources = t.by.iter().map(|f| &f.source);
    let told = |s: &&Source| **s != Source::Fields && (**s != Source::Constant || constant(&t));
    Some(match sources.find(told)? {
        Source::Fields => return None,
        Source::Constant if !all => judged(
            format!(
                "packets of some kind all touch one place of {name}, where its key is constant, and others may touch it too"
            ),
            "give it a key of packet fields everywhere, or keep apart what has a constant key",
            at,
        ),
        Source::Constant => judged(
            format!("every packet touches the same place of {name}: its key is constant"),
            "give it a key of packet fields; a number that is only added to, and that no packet looks at, is \
             merged instead",
            at,
        ),
        Source::Leased => judged(
            format!(
                "the key of {name} is a number that the program leased, and packets that come with it are not \
                 held against what is stored under it"
            ),
            "compare the packet's fields with those stored when the number was leased, and treat a mismatch \
             as a miss",
            at,
        ),
        Source::Value { object, .. } => {
            let from = program
                .objects
                .get(*object)
                .map_or("state", |o| o.name.as_str());
            judged(
                format!(
                    "the key of {name} is read from {from}, so the packet does not say which entry it touches"
                ),
                "use a key of packet fields, or keep in the entry of one object what is read from the other",
                at,
            )
        }
        Source::Foreign(what) => judged(
            format!("the key of {name} is {what}, which the NIC does not hash"),
            if what.contains("MAC") {
                "make the table static: read it from a file at start, as sbridge does, so that packets only \
                 read it"
            } else {
                "use a key of IP addresses and ports"
            },
            at,
        ),
    })
}

/// Where the keys are computed from fields, and yet no NIC can steer by them; none where something else is to blame.
pub(crate) fn computed(
    (model, nic): (&Model, &str),
    name: &str,
    (touches, exact): (&[&Touch], &Exact),
    (proved, why): (bool, &str),
) -> Option<Barred> {
    let other = |s: &Source| matches!(s, Source::Foreign(what) if what == OTHER);
    let bad = |s: &Source| *s != Source::Fields && *s != Source::Constant && !other(s);
    if touches.iter().any(|t| t.any(bad)) {
        return None;
    }
    let line = |t: &&&Touch| t.at.spot(model);
    let computed = touches.iter().filter(|t| t.any(other)).min_by_key(line);
    let of: BTreeSet<&str> = exact.same.iter().map(|s| s.of.as_str()).collect();
    let of: Vec<String> = of.into_iter().map(str::to_owned).collect();
    let from = match of.is_empty() {
        true => String::new(),
        false => format!(" from {}", of.join(", or from ")),
    };
    let first = computed.or(touches.iter().min_by_key(line));
    let reason = format!(
        "the key of {name} is computed{from}, and no key of {nic} brings together the packets that have the same one: \
         {why}; {}",
        exact.asked.text()
    );
    let line = first.and_then(|t| t.at.place(model));
    Some(Said::new(Rule::R4, reason, line).barred(
        "use the fields themselves as the key, or a number that is computed from them one to one",
        // What nobody answered may be otherwise.
        proved && exact.asked.open == 0,
    ))
}

/// Where the keys are fields and yet no NIC can steer by them.
pub(crate) fn device(
    name: &str,
    nic: &str,
    why: &str,
    line: Option<String>,
    proved: bool,
) -> Barred {
    let reason = format!(
        "no key of {nic} brings together the packets that touch one entry of {name}: {why}"
    );
    Said::new(Rule::R4, reason, line).barred(
        "use fewer cores, a NIC that hashes other sets of fields, or a finer key",
        proved,
    )
}
