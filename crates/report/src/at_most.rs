//! Upper bounds in words: the accesses that the proof of safety admits, for objects whose paths are not exhaustive.

use std::collections::BTreeMap;

use millrace_model::model::{Model, Touch};
use millrace_object::program::ObjectId;

use super::Context;
use super::access::place;
use super::document::AtMost;

/// Every access to an object in entries whose paths are not all; one line of the source once.
pub(super) fn of(context: &Context<'_>, model: &Model, object: ObjectId) -> Vec<AtMost> {
    type At<'a> = (&'a str, u32, u32, u32, &'static str);
    let mut all: BTreeMap<At<'_>, AtMost> = BTreeMap::new();
    for entry in &model.entries {
        if entry.outcome.covers() {
            continue;
        }
        for touch in entry.at_most.iter().filter(|t| t.object == object) {
            let line = touch.line.as_ref();
            let (file, number) = line.map_or(("", 0), |l| (&*l.file, l.line));
            // The same line may be there several times, for loops and functions that were laid out.
            let at = (file, number, touch.from, touch.to, touch.operation);
            let known = all.entry(at).or_insert_with(|| one(context, touch));
            known.effect = known.effect.max(touch.effect);
            if !known.entries.contains(&entry.function) {
                known.entries.push(entry.function.clone());
            }
        }
    }
    all.into_values().collect()
}

fn one(context: &Context<'_>, touch: &Touch) -> AtMost {
    let parts = context.names.objects.get(touch.object.0);
    let whole = parts.is_some_and(|p| touch.from == 0 && touch.to >= p.value_bytes);
    let members = parts.map_or(&[][..], |p| &p.value);
    let within = members
        .iter()
        .filter(|m| m.from < touch.to && touch.from < m.from.saturating_add(m.bytes));
    let call = !matches!(touch.operation, "load" | "store" | "atomic");
    AtMost {
        entries: Vec::new(),
        line: touch.line.as_ref().map(place),
        operation: touch.operation,
        effect: touch.effect,
        from: touch.from,
        to: touch.to,
        parts: if whole && call {
            Vec::new()
        } else {
            within.map(|m| m.name.clone()).collect()
        },
    }
}
