//! Changes to a table of prefixes. Which keys find the prefix afterwards is not followed: what the path found
//! before is good no longer, and what it finds later is any entry.

use millrace_object::helper::{Arg, Helper};

use super::super::state::{Place, Presence, Region, State, Value};
use super::super::{Engine, Gap};
use crate::expr::{ExprId, Origin};
use crate::model::Effect;

type Ways = Result<Vec<State>, Gap>;

const CHANGED: &str = "the prefixes were changed";

/// A handler's: the value's address, or null if the table is full.
pub fn put(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let mut access = engine.access(&s, on.id, "lpm_put", Effect::Write);
    access.key = prefix(engine, &mut s, h, on.object.key_bytes)?;
    access.value = engine.argument(&mut s, h, Arg::Value, on.object.value_bytes)?;
    forget(engine, &mut s, on.id);
    let name = format!("{}.full", on.object.name);
    let full = engine.unknown(&mut s, &name, 1, Origin::State(on.id.0));
    let (full, room) = engine.split(s, full);
    let mut out = Vec::new();
    if let Some(mut s) = room {
        s.accesses.push(access.clone().ended("stored"));
        let stem = format!("{}.put", on.object.name);
        // No key leads here, because which ones do is what is not followed.
        s.places.push(Place {
            presence: Presence::There,
            bytes: (0..).zip(access.value.iter().copied()).collect(),
            fresh: true,
            ..Place::new(on.id, Vec::new(), stem)
        });
        let at = s.places.len() - 1;
        let zero = engine.arena.number(0, 64);
        out.push(engine.after(s, Value::Ptr(Region::Place(at), zero)));
    }
    out.extend(full.map(|s| engine.full_up(s, access, 0)));
    Ok(out)
}

/// A handler's: whether the prefix was there.
pub fn delete(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let mut access = engine.access(&s, on.id, "lpm_delete", Effect::Write);
    access.key = prefix(engine, &mut s, h, on.object.key_bytes)?;
    forget(engine, &mut s, on.id);
    let name = format!("{}.removed", on.object.name);
    let there = engine.unknown(&mut s, &name, 1, Origin::State(on.id.0));
    let answer = engine.arena.resize(there, 64);
    s.accesses.push(access);
    Ok(vec![engine.after(s, Value::Num(answer))])
}

/// The address and the length of the prefix.
fn prefix(
    engine: &mut Engine<'_>,
    s: &mut State,
    h: &Helper,
    bytes: u32,
) -> Result<Vec<ExprId>, Gap> {
    let mut key = engine.argument(s, h, Arg::Key, bytes)?;
    let length = engine.number_in(s, 3)?;
    key.push(engine.arena.extract(length, 0, 8));
    Ok(key)
}

/// Ends what the path knows of a table.
pub(in crate::exec) fn forget(
    engine: &Engine<'_>,
    s: &mut State,
    object: millrace_object::program::ObjectId,
) {
    let live = engine.live_places(s, object);
    if !live.is_empty() {
        s.loose = Some("what keys find after a change of prefixes is not followed");
    }
    for i in live {
        if let Some(p) = s.places.get_mut(i) {
            p.lapsed = Some(CHANGED);
        }
    }
}
