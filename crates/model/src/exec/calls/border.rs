//! Helpers that move the packet's borders, after fastpath/helpers/xdp_adjust_*.h. Offsets go on counting from
//! the first byte of the packet as it came in; how much room there is before and behind it is the host's, a
//! symbol each.

use millrace_object::helper::Helper;

use super::super::answer::EINVAL;
use super::super::call::gap;
use super::super::state::{Region, Value};
use super::super::{Engine, Gap, State};
use crate::expr::{Bin, ExprId, Origin, Rel};

type Ways = Result<Vec<State>, Gap>;

/// Bytes of an Ethernet header: a packet never gets shorter.
const LEAST: i64 = 14;
/// Bytes of the longest packet.
const MOST: i64 = 0xffff;
/// Most bytes of metadata.
const META: i64 = 252;
const EACCES: i64 = 13;
/// Most bytes by which a packet grows in one call.
const GROWN: i64 = 4096;

/// The packet's length now.
pub fn length(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let e = engine.arena.minus(s.borders.end, s.borders.start);
    Ok(vec![engine.after(s, Value::Num(e))])
}

/// Moves the first byte, and the metadata with it.
pub fn head(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let by = distance(engine, &s)?;
    let b = s.borders;
    let start = engine.plus(b.start, by);
    let meta = engine.plus(b.meta, by);
    let length = engine.arena.minus(b.end, start);
    let floor = floor(engine);
    let conditions = [
        engine.at_least(length, LEAST),
        engine.at_most(length, MOST),
        engine.not_before(meta, floor),
    ];
    let fits = engine.arena.all(&conditions);
    let (yes, no) = engine.split(s, fits);
    let mut out = Vec::new();
    if let Some(mut s) = yes {
        if b.meta != b.start {
            let size = engine.arena.minus(b.start, b.meta);
            let Ok(size @ 0..=META) = engine.fixed(&s, size) else {
                return gap("metadata of a computed number of bytes is moved");
            };
            let bytes = engine.read(&mut s, Region::Packet, b.meta, size as u32)?;
            engine.write(&mut s, Region::Packet, meta, &bytes)?;
        }
        (s.borders.start, s.borders.meta) = (start, meta);
        out.push(engine.answers(s, 0));
    }
    out.extend(no.map(|s| engine.answers(s, -EINVAL)));
    Ok(out)
}

/// Moves the start of the metadata.
pub fn meta(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let by = distance(engine, &s)?;
    let meta = engine.plus(s.borders.meta, by);
    let size = engine.arena.minus(s.borders.start, meta);
    let floor = floor(engine);
    let conditions = [engine.at_least(size, 0), engine.not_before(meta, floor)];
    let inside = engine.arena.all(&conditions);
    let (inside, outside) = engine.split(s, inside);
    let mut out = Vec::new();
    out.extend(outside.map(|s| engine.answers(s, -EINVAL)));
    let low = engine.arena.extract(size, 0, 2);
    let conditions = [engine.is(low, 0), engine.at_most(size, META)];
    let fits = engine.arena.all(&conditions);
    let (yes, no) = engine.either_way(inside, fits);
    if let Some(mut s) = yes {
        s.borders.meta = meta;
        out.push(engine.answers(s, 0));
    }
    out.extend(no.map(|s| engine.answers(s, -EACCES)));
    Ok(out)
}

/// Moves the end; what is added is zero.
pub fn tail(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    let by = distance(engine, &s)?;
    let end = engine.plus(s.borders.end, by);
    let length = engine.arena.minus(end, s.borders.start);
    let came = engine.length();
    let room = engine.arena.sym("tailroom", 16, Origin::Port);
    let room = engine.arena.resize(room, 64);
    let ceiling = engine.plus(came, room);
    let conditions = [
        engine.at_least(length, LEAST),
        engine.at_most(length, MOST),
        engine.not_before(ceiling, end),
    ];
    let fits = engine.arena.all(&conditions);
    let (yes, no) = engine.split(s, fits);
    let mut out = Vec::new();
    if let Some(mut s) = yes {
        let longer = engine.exceeds(by, 0);
        if engine.arena.constant(longer) != Some(0) && engine.possible(&s, longer) {
            let Ok(more @ 0..=GROWN) = engine.fixed(&s, by) else {
                return gap("a packet grows by a computed number of bytes");
            };
            let zeros = vec![engine.arena.number(0, 8); more as usize];
            let from = s.borders.end;
            engine.write(&mut s, Region::Packet, from, &zeros)?;
        }
        s.borders.end = end;
        out.push(engine.answers(s, 0));
    }
    out.extend(no.map(|s| engine.answers(s, -EINVAL)));
    Ok(out)
}

/// The second argument: 32 bits with a sign.
fn distance(engine: &mut Engine<'_>, s: &State) -> Result<ExprId, Gap> {
    let e = engine.number_in(s, 2)?;
    let low = engine.arena.extract(e, 0, 32);
    Ok(engine.arena.sign_extend(low, 64))
}

/// The offset of the first byte that the host has kept free before the packet.
fn floor(engine: &mut Engine<'_>) -> ExprId {
    let room = engine.arena.sym("headroom", 16, Origin::Port);
    let room = engine.arena.resize(room, 64);
    let zero = engine.arena.number(0, 64);
    engine.arena.minus(zero, room)
}

impl Engine<'_> {
    fn at_least(&mut self, a: ExprId, b: i64) -> ExprId {
        let b = self.arena.number(b as u64, 64);
        let less = self.arena.compare(Rel::SignedLess, a, b);
        self.arena.not(less)
    }

    fn at_most(&mut self, a: ExprId, b: i64) -> ExprId {
        let more = self.exceeds(a, b);
        self.arena.not(more)
    }

    /// `a >= b`, of signed numbers. The difference is compared, because two sums that share their terms
    /// shorten.
    fn not_before(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let d = self.arena.minus(a, b);
        self.at_least(d, 0)
    }

    /// The low bits of `a` that a mask selects.
    pub(in crate::exec) fn masked(&mut self, a: ExprId, mask: u64) -> ExprId {
        let mask = self.arena.number(mask, self.arena.width(a));
        self.arena.binary(Bin::And, a, mask)
    }
}
