//! The meaning of visiting a map's entries: the entry in one slot, whose key is whatever it is; and the entry whose
//! timer fired. Two slots have different keys. An entry that the path knows by its key may be in any slot.

use millrace_object::helper::Helper;
use millrace_object::state::Addressing;

use super::super::call::On;
use super::super::state::{Access, Presence, Region, Value};
use super::super::{Engine, Gap, State};
use crate::expr::{ExprId, Origin};
use crate::model::Effect;

type Ways = Result<Vec<State>, Gap>;

pub fn meaning(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let index = engine.number_in(&s, 2)?;
    let (region, offset) = engine.pointer_in(&s, 3, h)?;
    if on.object.kind.addressing == Addressing::Index {
        return element(engine, s, &on, index, (region, offset));
    }
    let slot = engine.fixed(&s, index).ok().map(|n| n as u64);
    entry(engine, s, &on, "map_slot", slot, (region, offset))
}

/// The entry whose timer fired; null if it was not there any more.
pub fn fired(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let out = engine.pointer_in(&s, 2, h)?;
    entry(engine, s, &on, "timer_fired", None, out)
}

/// Of elements all are there, each in the slot of its index.
fn element(
    engine: &mut Engine<'_>,
    s: State,
    on: &On<'_>,
    index: ExprId,
    (region, offset): (Region, ExprId),
) -> Ways {
    let bytes = engine.split_bytes(index, on.object.key_bytes);
    let key = [on.prefix.clone(), bytes.clone()].concat();
    let mut access = engine.access(&s, on.id, "map_slot", Effect::Read);
    access.key = key.clone();
    let mut out = Vec::new();
    for (s, place) in engine.places(s, on, &key)? {
        let (there, absent) = engine.presence(s, place, on);
        if let Some(mut s) = there {
            engine.put(&mut s, region, offset, &bytes)?;
            s.accesses.push(access.clone());
            let zero = engine.arena.number(0, 64);
            out.push(engine.after(s, Value::Ptr(Region::Place(place), zero)));
        }
        out.extend(absent.map(|s| engine.answers(s, 0)));
    }
    Ok(out)
}

fn entry(
    engine: &mut Engine<'_>,
    mut s: State,
    on: &On<'_>,
    operation: &'static str,
    slot: Option<u64>,
    (region, offset): (Region, ExprId),
) -> Ways {
    let origin = Origin::State(on.id.0);
    let name = format!("{}.taken", on.object.name);
    let taken = engine.unknown(&mut s, &name, 1, origin);
    let name = format!("{}.key", on.object.name);
    let bytes = engine.unknown_bytes(&mut s, &name, on.object.key_bytes, origin);
    let key = [on.prefix.clone(), bytes.clone()].concat();
    let access = engine.access(&s, on.id, operation, Effect::Read);
    let (taken, empty) = engine.split(s, taken);
    let mut out = Vec::new();
    if let Some(mut s) = empty {
        s.accesses.push(access.clone().ended("absent"));
        let zeros = vec![engine.arena.number(0, 8); bytes.len()];
        engine.put(&mut s, region, offset, &zeros)?;
        out.push(engine.answers(s, 0));
    }
    let Some(mut rest) = taken else {
        return Ok(out);
    };
    let mut found = |engine: &mut Engine<'_>, mut s: State, place: usize| -> Result<(), Gap> {
        s.accesses.push(Access {
            key: key.clone(),
            outcome: Some("there"),
            ..access.clone()
        });
        engine.put(&mut s, region, offset, &bytes)?;
        let zero = engine.arena.number(0, 64);
        out.push(engine.after(s, Value::Ptr(Region::Place(place), zero)));
        Ok(())
    };
    for i in engine.live_places(&rest, on.id) {
        let Some(p) = rest.places.get(i).cloned() else {
            continue;
        };
        let elsewhere = p.slot.is_some() && slot.is_some() && p.slot != slot;
        let same = engine.same(&p.key, &key);
        if elsewhere || p.presence == Presence::Absent {
            let differs = engine.arena.not(same);
            match engine.only(rest, differs) {
                Some(s) => rest = s,
                None => return Ok(out),
            }
            continue;
        }
        let (yes, no) = engine.split(rest, same);
        if let Some(s) = yes {
            let (there, _) = engine.presence(s, i, on);
            if let Some(mut s) = there {
                if let Some(p) = s.places.get_mut(i) {
                    p.slot = p.slot.or(slot);
                }
                found(engine, s, i)?;
            }
        }
        match no {
            Some(s) => rest = s,
            None => return Ok(out),
        }
    }
    let place = engine.add_place(&mut rest, on.id, key.clone());
    if let Some(p) = rest.places.get_mut(place) {
        p.presence = Presence::There;
        p.slot = slot;
    }
    found(engine, rest, place)?;
    Ok(out)
}
