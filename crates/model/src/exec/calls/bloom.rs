//! Bloom filters: a value that was put in is found; any other may be. Puttings-in commute, and two of one
//! value are one. Which bits a value has depends on a secret, so any two accesses may be to the same bits.

use super::super::answer::{EINVAL, ENOENT};
use super::super::call::On;
use super::super::state::Presence;
use super::super::{Engine, Gap, State};
use crate::expr::ExprId;
use crate::model::Effect;

type Ways = Result<Vec<State>, Gap>;

pub fn push(engine: &mut Engine<'_>, s: State, on: &On<'_>, value: &[ExprId]) -> Ways {
    let flags = engine.number_in(&s, 3)?;
    let mut access = engine.access(&s, on.id, "map_push_elem", Effect::Add);
    access.value = value.to_vec();
    let plain = engine.is(flags, 0);
    let (good, bad) = engine.split(s, plain);
    let mut out = Vec::new();
    out.extend(bad.map(|s| engine.answers(s, -EINVAL)));
    let Some(s) = good else { return Ok(out) };
    for (mut s, place) in engine.places(s, on, value)? {
        s.accesses.push(access.clone());
        // The bits that it sets may be all that others lacked.
        for i in engine.live_places(&s, on.id) {
            if let Some(p) = s.places.get_mut(i)
                && p.presence == Presence::Absent
            {
                p.presence = Presence::Open;
                p.doubts += 1;
            }
        }
        if let Some(p) = s.places.get_mut(place) {
            p.presence = Presence::There;
        }
        out.push(engine.answers(s, 0));
    }
    Ok(out)
}

pub fn peek(engine: &mut Engine<'_>, s: State, on: &On<'_>, value: &[ExprId]) -> Ways {
    let mut access = engine.access(&s, on.id, "map_peek_elem", Effect::Read);
    access.key = value.to_vec();
    let mut out = Vec::new();
    for (s, place) in engine.places(s, on, value)? {
        let (there, absent) = engine.presence(s, place, on);
        for (s, outcome, answer) in [(there, "there", 0), (absent, "absent", -ENOENT)] {
            let Some(mut s) = s else { continue };
            s.accesses.push(access.clone().ended(outcome));
            out.push(engine.answers(s, answer));
        }
    }
    Ok(out)
}
