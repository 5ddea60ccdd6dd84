//! What the proof of safety admits, in words: for objects whose accesses the paths do not all show.

use millrace_object::program::ObjectId;

use super::Context;
use super::access::place;
use super::document::AtMost;
use crate::model::{Entry, Model, Outcome, Touch};

/// Every access to an object in entries whose paths are not all; one line of the source once.
pub(super) fn of(context: &Context<'_>, model: &Model, object: ObjectId) -> Vec<AtMost> {
    let mut all: Vec<(u32, AtMost)> = Vec::new();
    for entry in &model.entries {
        if entry.outcome == Outcome::Exhaustive {
            continue;
        }
        for touch in entry.at_most.iter().filter(|t| t.object == object) {
            let line = touch.line.as_ref().map_or(0, |l| l.line);
            let new = one(context, entry, touch);
            // The same line may be there several times, for loops and functions that were laid out.
            let same = |old: &&mut (u32, AtMost)| {
                let o = &old.1;
                (&o.entry, &o.line, o.operation, o.from, o.to)
                    == (&new.entry, &new.line, new.operation, new.from, new.to)
            };
            match all.iter_mut().find(same) {
                Some(old) => old.1.effect = old.1.effect.max(new.effect),
                None => all.push((line, new)),
            }
        }
    }
    all.sort_by(|a, b| (a.0, &a.1.line, a.1.from).cmp(&(b.0, &b.1.line, b.1.from)));
    all.into_iter().map(|a| a.1).collect()
}

fn one(context: &Context<'_>, entry: &Entry, touch: &Touch) -> AtMost {
    let parts = context.names.objects.get(touch.object.0);
    let whole = parts.is_some_and(|p| touch.from == 0 && touch.to >= p.value_bytes);
    let members = parts.map_or(&[][..], |p| &p.value);
    let within = members
        .iter()
        .filter(|m| m.from < touch.to && touch.from < m.from.saturating_add(m.bytes));
    let call = !matches!(touch.operation, "load" | "store" | "atomic");
    AtMost {
        entry: entry.function.clone(),
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
