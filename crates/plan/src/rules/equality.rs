//! R1, key equality: packets with equal keys touch the same entry, so they meet.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use super::Said;
use crate::computed::{Exact, Same};
use crate::packets::Way;
use crate::plan::Rule;
use crate::touch::{Found, Touch, distinct};
use crate::words;
use millrace_model::Model;
use millrace_steer::Kind;

/// An object whose packets meet by its keys.
pub(crate) fn judge(model: &Model, name: &str, touches: &[&Touch], ports: &[String]) -> Said {
    let writer = touches.iter().find(|t| t.writes).or(touches.first());
    let reason = format!(
        "packets with the same key touch the same entry of {name} and meet on one core{}",
        said(touches, ports)
    );
    Said::new(Rule::R1, reason, writer.and_then(|t| t.at.place(model)))
}

/// The same by keys that are computed.
pub(crate) fn computed(own: Said, name: &str, exact: &Exact, ports: &[String]) -> Said {
    let some = exact.same.iter().any(Same::is_common);
    let mut on: BTreeMap<(&str, &str), BTreeSet<usize>> = BTreeMap::new();
    for same in exact.same.iter().filter(|s| !some || s.is_common()) {
        let ports = on.entry((&same.of, &same.bits)).or_default();
        ports.insert(same.port);
    }
    let said = |((of, bits), on): (&(&str, &str), &BTreeSet<usize>)| {
        let names: Vec<String> = on.iter().filter_map(|p| ports.get(*p).cloned()).collect();
        let on = match names.is_empty() {
            true => String::new(),
            false => format!(" on {}", words::listed(&names)),
        };
        format!("the key is computed from {of}{on}, and packets with one key have the same {bits}")
    };
    let told = on.iter().filter(|((_, bits), _)| !bits.is_empty());
    let mut all: Vec<String> = told.map(said).take(4).collect();
    all.push(exact.asked.text());
    Said {
        reason: format!(
            "packets with the same key touch the same entry of {name} and meet on one core: {}",
            all.join("; ")
        ),
        ..own
    }
}

/// By which fields, port by port.
pub(crate) fn said(touches: &[&Touch], ports: &[String]) -> String {
    let mut all: Vec<String> = Vec::new();
    let touches: Vec<_> = distinct(touches.iter().copied()).map(|(_, f)| f).collect();
    // Of the commonest kind, if it is there: other kinds have fewer fields.
    let common = |f: &&&Found| f.packets.kind == Kind::Ipv4Tcp && f.way == Way::Plain;
    let some = touches.iter().any(|f| common(&f));
    let mut known = HashSet::new();
    for f in touches.iter().filter(|f| !some || common(f)) {
        if !known.insert((f.packets.port, Rc::as_ptr(&f.key))) {
            continue;
        }
        let key = words::key(&f.key);
        if key.is_empty() {
            continue;
        }
        let text = match ports.get(f.packets.port) {
            Some(port) => format!("by {key} on {port}"),
            None => format!("by {key}"),
        };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.truncate(4);
    if all.is_empty() {
        String::new()
    } else {
        format!(": {}", all.join("; "))
    }
}
