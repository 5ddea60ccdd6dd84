//! Functions of bytes whose answer is taken for any number within the helper's bounds, and what they write
//! for any bytes: conversions of text, and the kernel's SYN cookies, which are a function of a secret.

use millrace_object::helper::{Arg, Helper, Return};

use super::super::call::gap;
use super::super::state::Value;
use super::super::tell::numbered;
use super::super::{Engine, Gap, State};
use crate::expr::Origin;

pub fn meaning(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    for (i, arg) in h.args.iter().enumerate() {
        let bytes = match arg {
            Arg::Out(n) | Arg::InOut(n) => *n,
            Arg::Write { .. } | Arg::Update => engine.size_in(&s, i + 2, h)?,
            _ => continue,
        };
        // Of no bytes the pointer may be null.
        if bytes == 0 {
            continue;
        }
        let (region, offset) = engine.pointer_in(&s, i + 1, h)?;
        let bytes = engine.unknown_bytes(&mut s, h.name, bytes, Origin::Helper);
        engine.put(&mut s, region, offset, &bytes)?;
    }
    let Return::Scalar { min, max } = h.returns else {
        return gap(format!("{} answers no number", h.name));
    };
    let origin = if h.effects.random {
        s.random = numbered(s.random, u64::from(s.draws));
        Origin::Random
    } else {
        Origin::Helper
    };
    let e = engine.unknown(&mut s, h.name, 64, origin);
    if origin == Origin::Random {
        s.drawn.push(e);
    }
    let over = engine.exceeds(e, max);
    let under = min.checked_sub(1).map(|least| engine.exceeds(e, least));
    let mut within = vec![engine.arena.not(over)];
    within.extend(under);
    let within = engine.arena.all(&within);
    s.loose = Some("what text or a cookie is converted to is taken for any number");
    let s = engine.only(s, within);
    Ok(s.map(|s| engine.after(s, Value::Num(e)))
        .into_iter()
        .collect())
}
