//! Records that are handed to the host whole: `bpf_perf_event_output`, `bpf_ringbuf_output`, and the
//! question how full a ring is. Appending to a ring does not commute: records leave in their order. Whether
//! there is room is a symbol, asked anew at each record.

use millrace_object::helper::Helper;
use millrace_object::program::ObjectId;

use super::super::answer::{E2BIG, EINVAL};
use super::super::state::{Access, Region, Value};
use super::super::{Engine, Gap, State};
use crate::expr::{Bin, ExprId, Origin, Rel};
use crate::model::Effect;

type Ways = Result<Vec<State>, Gap>;

const EAGAIN: i64 = 11;
const EFAULT: i64 = 14;
const ENOSPC: i64 = 28;
const EOPNOTSUPP: i64 = 95;
/// The number that stands for this CPU's buffer.
const THIS_CPU: u64 = 0xffff_ffff;
/// Flags: how many bytes of the packet go along.
const FRAME: u64 = 0xf_ffff << 32;
/// Flags of a ring buffer: wake the reader up, or do not. Neither means anything here.
const WAKE: u64 = 3;

/// The bytes that two arguments name; none if their number is computed.
fn bytes(
    engine: &mut Engine<'_>,
    s: &mut State,
    r: usize,
    h: &Helper,
) -> Result<Option<Vec<ExprId>>, Gap> {
    let (region, offset) = engine.pointer_in(s, r, h)?;
    let Ok(size) = engine.size_in(s, r + 1, h) else {
        // How long it is, and what of the memory it holds.
        engine.tell_all(s, h);
        return Ok(None);
    };
    engine.read(s, region, offset, size).map(Some)
}

/// Whether the ring has room for one more record; first the way where it has.
pub(super) fn room(
    engine: &mut Engine<'_>,
    mut s: State,
    object: ObjectId,
) -> (Option<State>, Option<State>) {
    let name = format!("{}.full", engine.object_name(object));
    let full = engine.unknown(&mut s, &name, 1, Origin::State(object.0));
    let (full, room) = engine.split(s, full);
    (room, full)
}

/// A record in the ring, or its refusal with this error.
fn append(engine: &mut Engine<'_>, s: State, access: Access, error: i64, out: &mut Vec<State>) {
    let (room, full) = room(engine, s, access.object);
    if let Some(mut s) = room {
        s.accesses.push(access.clone().ended("appended"));
        out.push(engine.answers(s, 0));
    }
    out.extend(full.map(|s| engine.full_up(s, access, -error)));
}

pub fn output(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let flags = engine.number_in(&s, 4)?;
    let size = engine.number_in(&s, 3)?;
    let value = bytes(engine, &mut s, 2, h)?;
    let mut access = engine.access(&s, on.id, "ringbuf_output", Effect::Write);
    access.value = value.unwrap_or_default();
    let mut out = Vec::new();
    let other = engine.masked(flags, !WAKE);
    let known = engine.is(other, 0);
    let (good, bad) = engine.split(s, known);
    out.extend(bad.map(|s| engine.answers(s, -EINVAL)));
    let short = engine.less(size, 1 << 30);
    let (good, long) = engine.either_way(good, short);
    out.extend(long.map(|s| engine.answers(s, -E2BIG)));
    if let Some(s) = good {
        append(engine, s, access, EAGAIN, &mut out);
    }
    Ok(out)
}

pub fn perf(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let flags = engine.number_in(&s, 3)?;
    let value = bytes(engine, &mut s, 4, h)?;
    let mut access = engine.access(&s, on.id, "perf_event_output", Effect::Write);
    access.value = value.unwrap_or_default();
    let mut out = Vec::new();
    let mut refuse = |engine: &mut Engine<'_>, s: Option<State>, bad: ExprId, error: i64| {
        let (bad, good) = engine.either_way(s, bad);
        out.extend(bad.map(|s| engine.answers(s, -error)));
        good
    };
    let other = engine.masked(flags, !(FRAME | THIS_CPU));
    let none = engine.is(other, 0);
    let unknown = engine.arena.not(none);
    let length = engine.arena.minus(s.borders.end, s.borders.start);
    let good = refuse(engine, Some(s), unknown, EINVAL);
    let frame = engine.masked(flags, FRAME);
    let by = engine.arena.number(32, 64);
    let frame = engine.arena.binary(Bin::Shr, frame, by);
    let long = engine.arena.compare(Rel::Less, length, frame);
    let good = refuse(engine, good, long, EFAULT);
    let cpu = engine.cpu();
    let index = engine.low32(flags);
    let own = engine.is(index, THIS_CPU);
    let index = engine.arena.ite(own, cpu, index);
    let within = engine.less(index, on.object.capacity);
    let beyond = engine.arena.not(within);
    let good = refuse(engine, good, beyond, E2BIG);
    let same = engine.arena.compare(Rel::Eq, index, cpu);
    let other = engine.arena.not(same);
    let good = refuse(engine, good, other, EOPNOTSUPP);
    if let Some(mut s) = good {
        // The packet's bytes come behind the program's.
        if let Ok(n @ 1..=MOST_FRAME) = engine.fixed(&s, frame) {
            let start = s.borders.start;
            let more = engine.read(&mut s, Region::Packet, start, n as u32)?;
            access.value.extend(more);
        } else {
            let bytes: Vec<_> = s.packet.iter().map(|w| w.byte).collect();
            engine.tell(&mut s, &bytes);
            let start = s.borders.start;
            engine.tell(&mut s, &[frame, start]);
        }
        append(engine, s, access, ENOSPC, &mut out);
    }
    Ok(out)
}

/// Most bytes of the packet that are spelt out in a record.
const MOST_FRAME: i64 = 256;

pub fn query(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let on = engine.named(&s, h)?;
    let what = engine.number_in(&s, 2)?;
    let access = engine.access(&s, on.id, "ringbuf_query", Effect::Read);
    s.accesses.push(access);
    let name = format!("{}.position", on.object.name);
    let position = engine.unknown(&mut s, &name, 63, Origin::State(on.id.0));
    let position = engine.arena.resize(position, 64);
    let capacity = if on.object.is_shape() {
        // Rings of this shape differ in size.
        let name = format!("{}.capacity", on.object.name);
        let bytes = engine.unknown(&mut s, &name, 32, Origin::State(on.id.0));
        engine.arena.resize(bytes, 64)
    } else {
        engine.arena.number(on.object.capacity, 64)
    };
    let zero = engine.arena.number(0, 64);
    let size = engine.is(what, 1);
    let answer = engine.arena.ite(size, capacity, position);
    let known = engine.less(what, 4);
    let answer = engine.arena.ite(known, answer, zero);
    Ok(vec![engine.after(s, Value::Num(answer))])
}
