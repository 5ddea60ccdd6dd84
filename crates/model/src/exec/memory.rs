//! Loads and stores.

use millrace_object::program::{Line, ObjectId, Program};

use super::state::{Access, Cell, DELETED, Place, Presence, Region, State, Value, Written};
use super::{Engine, Gap};
use crate::expr::{Arena, Bin, ExprId, Origin, Rel};
use crate::model::Effect;
use crate::solver::Answer;

fn gap<T>(what: impl Into<String>) -> Result<T, Gap> {
    Err(Gap(what.into()))
}

/// Content of an entry before the path.
pub(crate) fn before(program: &Program, arena: &mut Arena, place: &Place, offset: u32) -> ExprId {
    let Some(object) = program.objects.get(place.object.0) else {
        return arena.number(0, 8);
    };
    let param = program
        .params
        .iter()
        .find(|p| p.object == place.object && (p.offset..p.offset + p.bytes).contains(&offset));
    if let Some(p) = param {
        let whole = arena.sym(&p.name, 8 * p.bytes, Origin::Param);
        return arena.extract(whole, 8 * (offset - p.offset), 8);
    }
    if let Some([byte]) = program.constant(place.object, offset, 1) {
        return arena.number(u64::from(*byte), 8);
    }
    let from = offset / 8 * 8;
    let to = (from + 8).min(object.value_bytes.max(offset + 1));
    let name = format!("{}[{from}..{to}]", place.stem);
    let word = arena.sym(&name, 8 * (to - from), place.origin());
    arena.extract(word, 8 * (offset - from), 8)
}

impl Engine<'_> {
    /// The only value that an offset can have on this path.
    pub(super) fn fixed(&mut self, s: &State, e: ExprId) -> Result<i64, Gap> {
        if let Some(c) = self.arena.constant(e) {
            return Ok(c as i64);
        }
        if self.guide.is_some() {
            return Ok(self.number_was(s, e) as i64);
        }
        if let Some(model) = s.model.clone() {
            let value = model.value(&self.arena, e);
            let c = self.arena.number(value, 64);
            let same = self.arena.compare(Rel::Eq, e, c);
            let other = self.arena.not(same);
            if matches!(self.asked(s, other), Answer::Fails) {
                return Ok(value as i64);
            }
        }
        self.blame(e);
        gap("memory other than the packet is accessed at an offset that is not one number")
    }

    /// The place of a global's only value.
    pub(super) fn global(&mut self, s: &mut State, object: ObjectId) -> usize {
        if let Some(at) = s.globals.get(&object) {
            return *at;
        }
        let name = self.object_name(object);
        s.places.push(Place {
            presence: Presence::There,
            turned: s.turned.contains(&object),
            ..Place::new(object, Vec::new(), name)
        });
        let at = s.places.len() - 1;
        s.globals.insert(object, at);
        at
    }

    /// Content of a place before the path wrote to it.
    pub(super) fn initial(&mut self, place: &Place, offset: u32) -> ExprId {
        if place.fresh {
            return self.arena.number(0, 8);
        }
        before(self.program, &mut self.arena, place, offset)
    }

    /// A byte of the packet as it is now.
    pub(super) fn packet_byte(&mut self, s: &State, offset: ExprId) -> Result<ExprId, Gap> {
        let (at, base) = self.divided(offset);
        let mut result: Option<ExprId> = None;
        let mut maybe = Vec::new();
        for w in s.packet.iter().rev() {
            if w.base == base {
                if w.at == at {
                    result = Some(w.byte);
                    break;
                }
                continue;
            }
            let there = self.joined(w.base, w.at);
            let same = self.arena.compare(Rel::Eq, there, offset);
            let apart = self.arena.constant(same) == Some(0) || self.are_apart(s, there, offset);
            if apart || !self.possible(s, same) {
                continue;
            }
            maybe.push((same, w.byte));
            if maybe.len() > 16 {
                return gap("a packet byte that many writes may have changed is read");
            }
        }
        let mut byte = match result {
            Some(b) => b,
            None => match s.borders.changed {
                Some(changed) if !self.lies_before(offset, changed.from) => self.arena.sym(
                    &format!("changed{}[{}]", changed.number, offset.0),
                    8,
                    Origin::Helper,
                ),
                _ => self.came_in(s, offset),
            },
        };
        for (same, other) in maybe.into_iter().rev() {
            byte = self.arena.ite(same, other, byte);
        }
        Ok(byte)
    }

    /// Whether an offset is less than another one by a constant.
    pub(super) fn lies_before(&mut self, offset: ExprId, other: ExprId) -> bool {
        let ((at, base), (to, other)) = (self.divided(offset), self.divided(other));
        base == other && at < to
    }

    /// A byte as it came in. Room before the packet that the program has taken holds zeros.
    pub(super) fn came_in(&mut self, s: &State, offset: ExprId) -> ExprId {
        let whole = self.arena.constant(s.borders.meta);
        let zero = self.arena.number(0, 64);
        let byte = self.arena.byte(offset);
        if whole.is_some_and(|m| m as i64 >= 0) {
            return byte;
        }
        let before = self.arena.compare(Rel::SignedLess, offset, zero);
        let zero = self.arena.number(0, 8);
        self.arena.ite(before, zero, byte)
    }

    pub(super) fn divided(&mut self, offset: ExprId) -> (i64, Option<ExprId>) {
        let (_, c) = self.arena.linear(offset);
        let minus = self.arena.number(c.wrapping_neg(), 64);
        let base = self.arena.binary(Bin::Add, offset, minus);
        (
            c as i64,
            (self.arena.constant(base) != Some(0)).then_some(base),
        )
    }

    pub(super) fn joined(&mut self, base: Option<ExprId>, at: i64) -> ExprId {
        let at = self.arena.number(at as u64, 64);
        match base {
            None => at,
            Some(b) => self.arena.binary(Bin::Add, b, at),
        }
    }

    /// Whether a condition can hold; yes if nobody can say.
    pub(super) fn possible(&mut self, s: &State, condition: ExprId) -> bool {
        !matches!(self.asked(s, condition), Answer::Fails)
    }

    /// So many bytes in memory order.
    pub(super) fn read(
        &mut self,
        s: &mut State,
        region: Region,
        offset: ExprId,
        bytes: u32,
    ) -> Result<Vec<ExprId>, Gap> {
        let mut out = Vec::new();
        if region == Region::Packet {
            for i in 0..bytes {
                let i = self.arena.number(u64::from(i), 64);
                let at = self.arena.binary(Bin::Add, offset, i);
                out.push(self.packet_byte(s, at)?);
            }
            return Ok(out);
        }
        let from = self.fixed(s, offset)?;
        for i in 0..i64::from(bytes) {
            out.push(match region {
                Region::Stack(frame) => match s.stack.get(&(frame, from + i)) {
                    Some(Cell::Byte(e)) => *e,
                    Some(Cell::Part(..)) => return gap("a part of a pointer is read"),
                    None => return gap("stack memory is read that the path has not written"),
                },
                Region::Place(at) => {
                    let Some(place) = s.places.get(at) else {
                        return gap("a place that does not exist");
                    };
                    self.usable(place)?;
                    let offset = (from + i) as u32;
                    match place.bytes.get(&offset) {
                        Some(e) => *e,
                        None => self.initial(place, offset),
                    }
                }
                _ => return gap("memory of the context is read by a helper"),
            });
        }
        Ok(out)
    }

    /// Writes bytes in memory order.
    pub(super) fn write(
        &mut self,
        s: &mut State,
        region: Region,
        offset: ExprId,
        bytes: &[ExprId],
    ) -> Result<(), Gap> {
        if region == Region::Packet {
            for (i, byte) in bytes.iter().enumerate() {
                let i = self.arena.number(i as u64, 64);
                let offset = self.arena.binary(Bin::Add, offset, i);
                let (at, base) = self.divided(offset);
                // An older write to the same byte counts no more: whatever was written between, this one is the last there.
                s.packet.retain(|w| w.base != base || w.at != at);
                s.packet.push(Written {
                    base,
                    at,
                    byte: *byte,
                });
            }
            return Ok(());
        }
        let from = self.fixed(s, offset)?;
        for (i, byte) in bytes.iter().enumerate() {
            let at = from + i as i64;
            match region {
                Region::Stack(frame) => {
                    s.stack.insert((frame, at), Cell::Byte(*byte));
                }
                Region::Place(p) => {
                    if let Some(place) = s.places.get(p) {
                        self.usable(place)?;
                    }
                    if let Some(place) = s.places.get_mut(p) {
                        place.bytes.insert(at as u32, *byte);
                    }
                }
                _ => return gap("memory of the context is written"),
            }
        }
        Ok(())
    }

    /// A load instruction's value.
    pub(super) fn load(
        &mut self,
        s: &mut State,
        region: Region,
        offset: ExprId,
        bytes: u32,
        line: Option<&Line>,
    ) -> Result<Value, Gap> {
        if region == Region::Context {
            return self.field(s, offset);
        }
        if let Region::Stack(frame) = region
            && matches!(bytes, 4 | 8)
        {
            let from = self.fixed(s, offset)?;
            let places = from..from + i64::from(bytes);
            let cells: Vec<_> = places.map(|at| s.stack.get(&(frame, at))).collect();
            // A compiler reloads what it knows that nobody uses; the proof refuses a use of what was never written.
            if cells.contains(&None) {
                return Ok(Value::Unset);
            }
            if let Some(Some(Cell::Part(value, 0))) = cells.first() {
                let whole = cells.iter().enumerate().all(
                    |(i, c)| matches!(c, Some(Cell::Part(v, n)) if v == value && usize::from(*n) == i),
                );
                return if whole {
                    Ok(*value)
                } else {
                    gap("a part of a pointer is read")
                };
            }
        }
        if let Some(array) = self.array(s, region, offset, bytes) {
            let whole = self.chosen(s, &array)?;
            self.note_chosen(s, &array, Effect::Read, "load", line)?;
            return Ok(Value::Num(self.arena.resize(whole, 64)));
        }
        let mut parts = self.read(s, region, offset, bytes)?;
        if let Region::Place(p) = region {
            self.note(s, p, (offset, bytes), Effect::Read, "load", &[], line)?;
        }
        parts.reverse();
        let whole = self.arena.concat(&parts);
        Ok(Value::Num(self.arena.resize(whole, 64)))
    }

    /// A store instruction.
    pub(super) fn store(
        &mut self,
        s: &mut State,
        (region, offset): (Region, ExprId),
        bytes: u32,
        value: Value,
        line: Option<&Line>,
    ) -> Result<(), Gap> {
        let Value::Num(e) = value else {
            // A pointer into the packet may be kept in 4 bytes, see `Kind`.
            let (Region::Stack(frame), 4 | 8) = (region, bytes) else {
                return gap("a pointer is kept in memory that is no stack");
            };
            let from = self.fixed(s, offset)?;
            for i in 0..bytes as u8 {
                s.stack
                    .insert((frame, from + i64::from(i)), Cell::Part(value, i));
            }
            return Ok(());
        };
        if let Some(array) = self.array(s, region, offset, bytes) {
            let e = self.arena.resize(e, 8 * bytes);
            self.choose(s, &array, e)?;
            return self.note_chosen(s, &array, Effect::Write, "store", line);
        }
        let parts: Vec<ExprId> = (0..bytes)
            .map(|i| self.arena.extract(e, 8 * i, 8))
            .collect();
        self.write(s, region, offset, &parts)?;
        if let Region::Place(p) = region {
            self.note(s, p, (offset, bytes), Effect::Write, "store", &parts, line)?;
        }
        Ok(())
    }

    /// Records an access through a pointer to a value.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn note(
        &mut self,
        s: &mut State,
        place: usize,
        (offset, bytes): (ExprId, u32),
        effect: Effect,
        operation: &'static str,
        value: &[ExprId],
        line: Option<&Line>,
    ) -> Result<(), Gap> {
        let from = self.fixed(s, offset)?;
        let what = (effect, operation, value.to_vec());
        self.noted(s, place, (from, bytes, None), what, line);
        Ok(())
    }

    /// Records an access to bytes from one on; `chosen`: to which of the elements of an array that they are.
    pub(super) fn noted(
        &self,
        s: &mut State,
        place: usize,
        (from, bytes, chosen): (i64, u32, Option<(ExprId, u32)>),
        (effect, operation, value): (Effect, &'static str, Vec<ExprId>),
        line: Option<&Line>,
    ) {
        let Some(p) = s.places.get(place) else {
            return;
        };
        let constant = self.program.constant(p.object, from as u32, bytes);
        if constant.is_some() && effect == Effect::Read {
            return;
        }
        s.accesses.push(Access {
            object: p.object,
            entry: p.number(),
            operation,
            effect,
            key: p.key.clone(),
            value,
            offset: Some(from as u32),
            bytes,
            answer: None,
            outcome: None,
            chosen,
            repeated: false,
            line: line.cloned(),
        });
    }

    /// A pointer to a value is good until the entry is gone, and a deleted entry's until another may be in its place
    /// (fastpath/state/hash.h). What is written to it in between nobody finds.
    fn usable(&self, place: &Place) -> Result<(), Gap> {
        match place.lapsed {
            None | Some(DELETED) => Ok(()),
            Some(why) => gap(format!(
                "a value of `{}` is used after {why}",
                self.object_name(place.object)
            )),
        }
    }

    /// A field of the context.
    fn field(&mut self, s: &State, offset: ExprId) -> Result<Value, Gap> {
        let at = self.fixed(s, offset)?;
        let number = |engine: &mut Self, name: &str, origin| {
            let e = engine.arena.sym(name, 32, origin);
            Ok(Value::Num(engine.arena.resize(e, 64)))
        };
        match at {
            0 => Ok(Value::Ptr(Region::Packet, s.borders.start)),
            4 => Ok(Value::Ptr(Region::Packet, s.borders.end)),
            8 => Ok(Value::Ptr(Region::Packet, s.borders.meta)),
            12 => number(self, "port", Origin::Port),
            16 => number(self, "queue", Origin::Port),
            24 => Ok(Value::Num(self.arena.sym("time", 64, Origin::Time))),
            32 => number(self, "ports", Origin::Port),
            other => gap(format!("the context's field at byte {other}")),
        }
    }

    /// The length, in 64 bits, of the packet as it came in.
    pub(super) fn length(&mut self) -> ExprId {
        let length = self.arena.sym("length", 16, Origin::Length);
        self.arena.resize(length, 64)
    }
}
