//! `bpf_redirect_map`, as fastpath/state/devmap.h and targets.h have it: to what is under the index; where
//! nothing is, the answer is the verdict in the lowest two bits of the flags.

use millrace_object::helper::Helper;

use super::super::state::{Access, Target, Value};
use super::super::{Engine, Gap, State};
use super::redirect::REDIRECT;
use crate::expr::{Bin, Rel};
use crate::model::Effect;

/// Flags: the verdict where there is no target.
const ACTION: u64 = 3;
const BROADCAST: u64 = 1 << 3;
const NOT_INGRESS: u64 = 1 << 4;

pub fn meaning(engine: &mut Engine<'_>, s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let on = engine.named(&s, h)?;
    let (index, flags) = (engine.number_in(&s, 2)?, engine.number_in(&s, 3)?);
    let devices = on.object.kind.holds_interfaces();
    let known = if devices {
        ACTION | BROADCAST | NOT_INGRESS
    } else {
        ACTION
    };
    let access = engine.access(&s, on.id, "redirect_map", Effect::Read);
    let mut out = Vec::new();
    let has = |engine: &mut Engine<'_>, bits: u64| {
        let bits = engine.arena.number(bits, 64);
        let part = engine.arena.binary(Bin::And, flags, bits);
        let none = engine.is(part, 0);
        engine.arena.not(none)
    };
    let unknown = has(engine, !known);
    let (aborted, good) = engine.split(s, unknown);
    out.extend(aborted.map(|s| engine.answers(s, 0)));
    let (all, one) = if devices {
        let broadcast = has(engine, BROADCAST);
        engine.either_way(good, broadcast)
    } else {
        (None, good)
    };
    if let Some(mut s) = all {
        // Whether the port that the packet came in at is left out.
        engine.tell(&mut s, &[flags]);
        s.target = Some(Target::All(on.id));
        s.accesses.push(access.clone().ended("all"));
        out.push(engine.answers(s, REDIRECT));
    }
    let Some(s) = one else { return Ok(out) };
    let key = engine.split_bytes(index, 4);
    let action = engine.arena.number(ACTION, 64);
    let action = engine.arena.binary(Bin::And, flags, action);
    for (s, place) in engine.places(s, &on, &key)? {
        let (there, absent) = engine.presence(s, place, &on);
        let note = |s: &mut State, outcome| {
            s.accesses.push(Access {
                key: key.clone(),
                outcome: Some(outcome),
                ..access.clone()
            });
        };
        if let Some(mut s) = there {
            note(&mut s, "there");
            s.target = Some(Target::Entry(on.id, key.clone()));
            out.push(engine.answers(s, REDIRECT));
        }
        if let Some(mut s) = absent {
            note(&mut s, "absent");
            s.target = None;
            out.push(engine.after(s, Value::Num(action)));
        }
    }
    Ok(out)
}

impl Engine<'_> {
    /// `a < b`, of unsigned numbers.
    pub(in crate::exec) fn less(&mut self, a: crate::expr::ExprId, b: u64) -> crate::expr::ExprId {
        let width = self.arena.width(a);
        let b = self.arena.number(b, width);
        self.arena.compare(Rel::Less, a, b)
    }
}
