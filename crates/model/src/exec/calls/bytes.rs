//! `bpf_xdp_load_bytes` and `bpf_xdp_store_bytes`, after fastpath/helpers/xdp_load_bytes.h: what lies beyond
//! the packet's end is not copied, and a buffer to load into is zero then.

use millrace_object::helper::Helper;

use super::super::answer::EINVAL;
use super::super::state::Region;
use super::super::{Engine, Gap, State};
use crate::expr::{ExprId, Rel};

type Ways = Result<Vec<State>, Gap>;

const EFAULT: i64 = 14;
/// Highest offset.
const HIGHEST: u64 = 0xffff;

/// Where the path goes: to an offset beyond any packet, beyond this one's end, or to bytes of it.
struct Found {
    far: Option<State>,
    beyond: Option<State>,
    inside: Option<State>,
    /// from the packet's first byte as it came in
    at: ExprId,
    bytes: u32,
}

fn find(engine: &mut Engine<'_>, s: State, h: &Helper) -> Result<Found, Gap> {
    let bytes = engine.size_in(&s, 4, h)?;
    let offset = engine.number_in(&s, 2)?;
    let offset = engine.low32(offset);
    let length = engine.arena.minus(s.borders.end, s.borders.start);
    let at = engine.plus(s.borders.start, offset);
    let last = engine.arena.number(HIGHEST, 64);
    let far = engine.arena.compare(Rel::Less, last, offset);
    let (far, near) = engine.split(s, far);
    let size = engine.arena.number(u64::from(bytes), 64);
    let to = engine.plus(offset, size);
    let beyond = engine.arena.compare(Rel::Less, length, to);
    let (beyond, inside) = engine.either_way(near, beyond);
    Ok(Found {
        far,
        beyond,
        inside,
        at,
        bytes,
    })
}

pub fn load(engine: &mut Engine<'_>, s: State, h: &Helper) -> Ways {
    let (region, buffer) = engine.pointer_in(&s, 3, h)?;
    let found = find(engine, s, h)?;
    let mut out = Vec::new();
    if let Some(mut s) = found.inside {
        let bytes = engine.read(&mut s, Region::Packet, found.at, found.bytes)?;
        engine.put(&mut s, region, buffer, &bytes)?;
        out.push(engine.answers(s, 0));
    }
    let zeros = vec![engine.arena.number(0, 8); found.bytes as usize];
    for (s, error) in [(found.far, EFAULT), (found.beyond, EINVAL)] {
        if let Some(mut s) = s {
            engine.put(&mut s, region, buffer, &zeros)?;
            out.push(engine.answers(s, -error));
        }
    }
    Ok(out)
}

pub fn store(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let (region, buffer) = engine.pointer_in(&s, 3, h)?;
    let bytes = engine.size_in(&s, 4, h)?;
    let bytes = engine.read(&mut s, region, buffer, bytes)?;
    let found = find(engine, s, h)?;
    let mut out = Vec::new();
    if let Some(mut s) = found.inside {
        engine.write(&mut s, Region::Packet, found.at, &bytes)?;
        out.push(engine.answers(s, 0));
    }
    out.extend(found.far.map(|s| engine.answers(s, -EFAULT)));
    out.extend(found.beyond.map(|s| engine.answers(s, -EINVAL)));
    Ok(out)
}

impl Engine<'_> {
    /// The bytes that a helper writes at an argument's target, which may be a value of a state object.
    pub(in crate::exec) fn put(
        &mut self,
        s: &mut State,
        region: Region,
        offset: ExprId,
        bytes: &[ExprId],
    ) -> Result<(), Gap> {
        self.write(s, region, offset, bytes)?;
        if let Region::Place(p) = region {
            let line = self.flow.steps.get(s.at).and_then(|s| s.line.clone());
            let effect = crate::model::Effect::Write;
            let count = bytes.len() as u32;
            self.note(s, p, (offset, count), effect, "store", bytes, line.as_ref())?;
        }
        Ok(())
    }
}
