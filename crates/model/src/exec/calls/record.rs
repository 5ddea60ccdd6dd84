//! Records that a program writes where they will be read: `bpf_ringbuf_reserve` and what gives the record
//! back. A record is a place of its own until then; what is in it is what the program wrote.

use millrace_object::helper::Helper;

use super::super::call::gap;
use super::super::state::{Place, Presence, Region, Value};
use super::super::{Engine, Gap, State};
use super::ring::room;
use crate::model::Effect;

type Ways = Result<Vec<State>, Gap>;

pub fn reserve(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let size = engine.size_in(&s, 2, h)?;
    let flags = engine.number_in(&s, 3)?;
    let access = engine.access(&s, on.id, "ringbuf_reserve", Effect::Write);
    let plain = engine.is(flags, 0);
    let (good, bad) = engine.split(s, plain);
    let mut out = Vec::new();
    out.extend(bad.map(|s| engine.answers(s, 0)));
    let Some(s) = good else { return Ok(out) };
    let (room, full) = room(engine, s, on.id);
    if let Some(mut s) = room {
        s.accesses.push(access.clone().ended("reserved"));
        let at = engine.add_place(&mut s, on.id, Vec::new());
        if let Some(p) = s.places.get_mut(at) {
            p.presence = Presence::There;
            p.fresh = true;
            p.slot = Some(u64::from(size));
        }
        let zero = engine.arena.number(0, 64);
        out.push(engine.after(s, Value::Ptr(Region::Place(at), zero)));
    }
    out.extend(full.map(|s| engine.full_up(s, access, 0)));
    Ok(out)
}

/// With its bytes, if it is handed on.
pub fn give_back(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let (region, _) = engine.pointer_in(&s, 1, h)?;
    let Region::Place(at) = region else {
        return gap(format!("{} of what is no record", h.name));
    };
    let Some(Place {
        object,
        slot: Some(size),
        ..
    }) = s.places.get(at).cloned()
    else {
        return gap(format!("{} of what is no record", h.name));
    };
    let mut access = engine.access(&s, object, h.name, Effect::Write);
    if h.name == "ringbuf_submit" {
        let zero = engine.arena.number(0, 64);
        access.value = engine.read(&mut s, region, zero, size as u32)?;
    }
    s.accesses.push(access);
    if let Some(p) = s.places.get_mut(at) {
        p.lapsed = Some("its record was given back");
    }
    Ok(vec![engine.answers(s, 0)])
}
