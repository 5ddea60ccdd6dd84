//! `bpf_tail_call`: where a program is under the index the path ends there, and that program goes on with the
//! packet and the state as they are; its paths are those of its own entry, whose guards speak of the packet as
//! it is then. Where none is, the call falls through.

use millrace_object::helper::Helper;

use super::super::answer::ENOENT;
use super::super::call::gap;
use super::super::state::Value;
use super::super::{Engine, Gap, State};
use crate::model::{Effect, Verdict};

pub fn meaning(engine: &mut Engine<'_>, s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let on = engine.named(&s, h)?;
    let index = engine.number_in(&s, 3)?;
    let index = engine.arena.extract(index, 0, 32);
    let key = engine.split_bytes(index, 4);
    let mut access = engine.access(&s, on.id, "tail_call", Effect::Read);
    access.key.clone_from(&key);
    let mut out = Vec::new();
    for (s, place) in engine.places(s, &on, &key)? {
        let (there, absent) = engine.presence(s, place, &on);
        if let Some(mut s) = there {
            s.accesses.push(access.clone().ended("there"));
            let mut path = engine.path(s, Value::Unset);
            path.verdict = Verdict::GoesOn(on.id, index);
            engine.left.push(path);
        }
        if let Some(mut s) = absent {
            s.accesses.push(access.clone().ended("absent"));
            out.push(engine.answers(s, -ENOENT));
        }
    }
    Ok(out)
}

/// The same in a function that another one calls: its caller goes on with what the other program gives, and
/// with the packet as that has left it.
// The signature is that of all meanings.
#[allow(clippy::needless_pass_by_value)]
pub fn away(engine: &mut Engine<'_>, s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let name = engine.named(&s, h)?.object.name.clone();
    gap(format!(
        "a tail call by `{name}` in a function, whose caller goes on afterwards, is not followed"
    ))
}
