//! `bpf_redirect`: the verdict `XDP_REDIRECT` leads to this interface. No flag is defined for XDP; others make
//! the answer `XDP_ABORTED`, and the target stays what it was.

use millrace_object::helper::Helper;

use super::super::state::Target;
use super::super::{Engine, Gap, State};

/// `XDP_REDIRECT`
pub(super) const REDIRECT: i64 = 4;

pub fn meaning(engine: &mut Engine<'_>, s: State, _: &Helper) -> Result<Vec<State>, Gap> {
    let (to, flags) = (engine.number_in(&s, 1)?, engine.number_in(&s, 2)?);
    let plain = engine.is(flags, 0);
    let (yes, no) = engine.split(s, plain);
    let mut out = Vec::new();
    if let Some(mut s) = yes {
        s.target = Some(Target::Interface(engine.arena.extract(to, 0, 32)));
        out.push(engine.answers(s, REDIRECT));
    }
    if let Some(s) = no {
        out.push(engine.answers(s, 0));
    }
    Ok(out)
}
