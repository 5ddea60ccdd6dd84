//! Queues and stacks. A value that the path pushed is found again by a stack's next pop; whether anything else
//! is there, and what, are symbols. Neither pushes nor pops commute.

use millrace_object::contract::Holds;
use millrace_object::helper::{Arg, Helper};

use super::super::answer::{E2BIG, EINVAL, ENOENT};
use super::super::call::On;
use super::super::state::Presence;
use super::super::{Engine, Gap, State};
use super::bloom;
use crate::expr::Origin;
use crate::model::Effect;

type Ways = Result<Vec<State>, Gap>;

/// `BPF_EXIST`: a full one gives up its oldest value.
const EXIST: u64 = 2;

pub fn push(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let value = engine.argument(&mut s, h, Arg::Value, on.object.value_bytes)?;
    if on.object.kind.membership() {
        return bloom::push(engine, s, &on, &value);
    }
    let flags = engine.number_in(&s, 3)?;
    let mut access = engine.access(&s, on.id, "map_push_elem", Effect::Write);
    access.value.clone_from(&value);
    let mut out = Vec::new();
    let other = engine.masked(flags, !EXIST);
    let known = engine.is(other, 0);
    let (good, bad) = engine.split(s, known);
    out.extend(bad.map(|s| engine.answers(s, -EINVAL)));
    let Some(mut s) = good else { return Ok(out) };
    let name = format!("{}.full", on.object.name);
    let full = engine.unknown(&mut s, &name, 1, Origin::State(on.id.0));
    let polite = engine.is(flags, 0);
    let refused = engine.arena.all(&[full, polite]);
    let (refused, taken) = engine.split(s, refused);
    out.extend(refused.map(|s| engine.full_up(s, access.clone(), -E2BIG)));
    if let Some(mut s) = taken {
        s.accesses.push(access.ended("pushed"));
        let at = engine.add_place(&mut s, on.id, Vec::new());
        if let Some(p) = s.places.get_mut(at) {
            p.presence = Presence::There;
            p.bytes = (0..).zip(value).collect();
        }
        out.push(engine.answers(s, 0));
    }
    Ok(out)
}

pub fn pop(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    take(engine, s, h, "map_pop_elem", Effect::Write)
}

pub fn peek(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    if on.object.kind.membership() {
        let value = engine.argument(&mut s, h, Arg::ValueOut, on.object.value_bytes)?;
        return bloom::peek(engine, s, &on, &value);
    }
    take(engine, s, h, "map_peek_elem", Effect::Read)
}

fn take(
    engine: &mut Engine<'_>,
    mut s: State,
    h: &Helper,
    operation: &'static str,
    effect: Effect,
) -> Ways {
    let on = engine.named(&s, h)?;
    let (region, offset) = engine.pointer_in(&s, 2, h)?;
    let access = engine.access(&s, on.id, operation, effect);
    let bytes = on.object.value_bytes;
    let mut out = Vec::new();
    let pushed = engine.live_places(&s, on.id);
    // Of a stack the path's last one; of a queue the first, unless another was there before.
    let newest = on.object.kind.holds == Holds::Sequence { newest: true };
    let last = match newest {
        true => pushed.last(),
        false => pushed.first(),
    };
    let (own, others) = match (last, newest) {
        (Some(at), true) => (Some((s, *at)), None),
        (Some(at), _) => {
            let before = older(engine, &mut s, &on);
            let (yes, no) = engine.split(s, before);
            (no.map(|s| (s, *at)), yes.map(|s| (s, true)))
        }
        (None, _) => (None, Some((s, false))),
    };
    if let Some((mut s, at)) = own {
        let zero = engine.arena.number(0, 64);
        let value = engine.read(&mut s, super::super::state::Region::Place(at), zero, bytes)?;
        if effect == Effect::Write
            && let Some(p) = s.places.get_mut(at)
        {
            p.lapsed = Some("it was taken out");
        }
        s.accesses.push(access.clone().ended("there"));
        engine.put(&mut s, region, offset, &value)?;
        out.push(engine.answers(s, 0));
    }
    let Some((mut s, there)) = others else {
        return Ok(out);
    };
    let (there, none) = if there {
        (Some(s), None)
    } else {
        let any = older(engine, &mut s, &on);
        engine.split(s, any)
    };
    if let Some(mut s) = there {
        let name = format!("{}.next", on.object.name);
        let value = engine.unknown_bytes(&mut s, &name, bytes, Origin::State(on.id.0));
        s.accesses.push(access.clone().ended("there"));
        engine.put(&mut s, region, offset, &value)?;
        out.push(engine.answers(s, 0));
    }
    if let Some(mut s) = none {
        s.accesses.push(access.ended("empty"));
        let zeros = vec![engine.arena.number(0, 8); bytes as usize];
        engine.put(&mut s, region, offset, &zeros)?;
        out.push(engine.answers(s, -ENOENT));
    }
    Ok(out)
}

/// Whether there is a value that the path has not pushed. Asked anew each time: a question whose answer the
/// path could know from the one before makes the path loose.
fn older(engine: &mut Engine<'_>, s: &mut State, on: &On<'_>) -> crate::expr::ExprId {
    let asked = s
        .accesses
        .iter()
        .any(|a| a.object == on.id && matches!(a.operation, "map_pop_elem" | "map_peek_elem"));
    if asked {
        s.loose = Some("how many values are in a queue is not followed from call to call");
    }
    let name = format!("{}.values", on.object.name);
    engine.unknown(s, &name, 1, Origin::State(on.id.0))
}
