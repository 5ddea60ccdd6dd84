//! Timers in values (fastpath/state/timers.h). What a timer is set to is kept beside the value; whether one is
//! ready or running is a symbol, and each call writes to its entry. What a timer calls is an entry of the
//! program, executed on its own.

use millrace_object::helper::Helper;

use super::super::answer::EINVAL;
use super::super::call::gap;
use super::super::state::{Region, Value};
use super::super::{Engine, Gap, State};
use crate::expr::{ExprId, Origin};
use crate::model::Effect;

type Ways = Result<Vec<State>, Gap>;

const EBUSY: i64 = 16;
const EDEADLK: i64 = 35;

/// Refused for an unknown clock, and for a timer that is ready.
pub fn init(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    answered(engine, s, h, &[0, -EINVAL, -EBUSY])
}

/// Refused for a timer that is not ready, and for unknown flags.
pub fn ready(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    answered(engine, s, h, &[0, -EINVAL])
}

/// Whether it was running; refused in its own function, and for a timer that is not ready.
pub fn cancel(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    answered(engine, s, h, &[0, 1, -EINVAL, -EDEADLK])
}

fn answered(engine: &mut Engine<'_>, mut s: State, h: &Helper, answers: &[i64]) -> Ways {
    let (Region::Place(at), _) = engine.pointer_in(&s, 1, h)? else {
        return gap(format!("{} of what is in no value", h.name));
    };
    let Some(place) = s.places.get(at).cloned() else {
        return gap(format!("{} of what is in no value", h.name));
    };
    let mut access = engine.access(&s, place.object, h.name, Effect::Write);
    access.key.clone_from(&place.key);
    s.accesses.push(access);
    let name = format!("{}.{}", engine.object_name(place.object), h.name);
    let answer = engine.unknown(&mut s, &name, 64, Origin::State(place.object.0));
    let one: Vec<ExprId> = answers
        .iter()
        .map(|a| engine.is(answer, *a as u64))
        .collect();
    let possible = one.into_iter().reduce(|a, b| engine.arena.either(a, b));
    let Some(possible) = possible else {
        return Ok(Vec::new());
    };
    s.loose = Some("whether a timer is ready is not followed from call to call");
    let s = engine.only(s, possible);
    Ok(s.map(|s| engine.after(s, Value::Num(answer)))
        .into_iter()
        .collect())
}
