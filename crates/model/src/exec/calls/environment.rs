//! The packet's environment: time, random draws, the CPU; and calls without effect.

use millrace_object::helper::Helper;

use super::super::state::Value;
use super::super::tell::numbered;
use super::super::{Engine, Gap, State};
use crate::expr::{Bin, Origin};

type Ways = Result<Vec<State>, Gap>;

/// All clocks are the packet's time, which does not change while it is processed.
pub fn time(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let e = engine.arena.sym("time", 64, Origin::Time);
    Ok(vec![engine.after(s, Value::Num(e))])
}

/// The same in units of 4 ms.
pub fn jiffies(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let time = engine.arena.sym("time", 64, Origin::Time);
    let unit = engine.arena.number(4_000_000, 64);
    let e = engine.arena.binary(Bin::Div, time, unit);
    Ok(vec![engine.after(s, Value::Num(e))])
}

/// Each draw is another number.
pub fn random(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    s.random = numbered(s.random, u64::from(s.draws));
    let e = engine.unknown(&mut s, h.name, 32, Origin::Random);
    s.drawn.push(e);
    let e = engine.arena.resize(e, 64);
    Ok(vec![engine.after(s, Value::Num(e))])
}

/// The CPU does not change while a packet is processed.
pub fn cpu(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let e = engine.cpu();
    Ok(vec![engine.after(s, Value::Num(e))])
}

/// 0, and no effect that a program could see.
pub fn nothing(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    Ok(vec![engine.answers(s, 0)])
}

/// A line for the operator, and how long it was: fastpath/helpers/trace_printk.h.
pub fn trace(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    // Nothing is written anywhere: how long the line would be is all that comes of it.
    engine.tell_arguments(&mut s, h);
    let e = engine.unknown(&mut s, h.name, 32, Origin::Helper);
    let e = engine.arena.sign_extend(e, 64);
    Ok(vec![engine.after(s, Value::Num(e))])
}

/// The upper half of a product.
pub fn multiply_high(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let (a, b) = (engine.number_in(&s, 1)?, engine.number_in(&s, 2)?);
    let e = engine.arena.binary(Bin::MulHigh, a, b);
    Ok(vec![engine.after(s, Value::Num(e))])
}

impl Engine<'_> {
    /// The CPU's number.
    pub(in crate::exec) fn cpu(&mut self) -> crate::expr::ExprId {
        let e = self.arena.sym("cpu", 32, Origin::Helper);
        self.arena.resize(e, 64)
    }
}
