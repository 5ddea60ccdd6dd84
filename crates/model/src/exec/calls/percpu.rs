//! `bpf_map_lookup_percpu_elem`: a worker has the values of its own CPU, and none of another's.

use millrace_object::helper::{Arg, Helper, MAP_LOOKUP_ELEM};

use super::super::call::gap;
use super::super::{Access, Engine, Gap, State};
use crate::expr::Rel;
use crate::kinds::{self, Meaning};
use crate::model::Effect;

pub fn meaning(engine: &mut Engine<'_>, s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let on = engine.named(&s, h)?;
    let Some(lookup) = kinds::meaning(on.object.kind, &MAP_LOOKUP_ELEM) else {
        return gap(format!("{} on `{}`", h.name, on.object.name));
    };
    let lookup = Meaning {
        helper: h.name,
        ..lookup
    };
    let cpu = engine.number_in(&s, 3)?;
    let (cpu, own) = (engine.low32(cpu), engine.cpu());
    let same = engine.arena.compare(Rel::Eq, cpu, own);
    let (own, other) = engine.split(s, same);
    let mut out = Vec::new();
    if let Some(s) = own {
        out.extend(engine.on_object(s, h, &on, lookup)?);
    }
    if let Some(mut s) = other {
        let bytes = on.object.key_bytes;
        let key = [
            on.prefix.clone(),
            engine.argument(&mut s, h, Arg::Key, bytes)?,
        ];
        let access = Access {
            key: key.concat(),
            outcome: Some("absent"),
            ..engine.access(&s, on.id, h.name, Effect::Read)
        };
        s.accesses.push(access);
        out.push(engine.answers(s, 0));
    }
    Ok(out)
}
