//! Helper calls: who says what a call means, and what all meanings need.

use millrace_object::helper::{self, Arg, Helper};
use millrace_object::program::{ObjectId, StateObject};

use super::state::{Access, Region, State, Value};
use super::{Engine, Gap, calls};
use crate::expr::{Bin, ExprId, Origin, Rel};
use crate::kinds;
use crate::model::Effect;

pub(super) fn gap<T>(what: impl Into<String>) -> Result<T, Gap> {
    Err(Gap(what.into()))
}

/// The object that a call is on.
#[derive(Clone)]
pub(super) struct On<'p> {
    /// which; a shape (`Nesting::Shape`) for a map in a map
    pub id: ObjectId,
    /// its declaration
    pub object: &'p StateObject,
    /// what comes before each key: of a map in a map the four bytes of the number that says which it is
    pub prefix: Vec<ExprId>,
}

impl<'a> Engine<'a> {
    /// A call, and the ways on from it.
    pub(super) fn call(&mut self, s: State, number: u32) -> Result<Vec<State>, Gap> {
        let Some(h) = helper::by_number(number) else {
            return gap(format!("helper #{number} has no meaning here"));
        };
        if let Some((meaning, given)) = calls::meaning(h.name) {
            let mut s = s;
            if given == calls::Given::Told {
                self.tell_all(&mut s, h);
            }
            return meaning(self, s, h);
        }
        let Some(on) = self.on(&s, h) else {
            return gap(format!("{} has no meaning here yet", h.name));
        };
        match kinds::meaning(on.object.kind, h) {
            Some(m) => self.on_object(s, h, &on, m),
            None => gap(format!(
                "{} on `{}` ({}) has no meaning here yet",
                h.name, on.object.name, on.object.kind.name
            )),
        }
    }

    /// The object that a call names.
    pub(super) fn on(&mut self, s: &State, h: &Helper) -> Option<On<'a>> {
        let at = h.object_argument()?;
        let (id, prefix) = match s.reg(at + 1) {
            Value::Object(id) => (id, Vec::new()),
            Value::Inner(id, number) => (id, self.split_bytes(number, 4)),
            _ => return None,
        };
        let program = self.program;
        let object = program.objects.get(id.0)?;
        Some(On { id, object, prefix })
    }

    /// The same for a helper that cannot be called without one.
    pub(super) fn named(&mut self, s: &State, h: &Helper) -> Result<On<'a>, Gap> {
        match self.on(s, h) {
            Some(on) => Ok(on),
            None => gap(format!("{} on what is no object", h.name)),
        }
    }

    /// The state after a call that answered this.
    pub(super) fn after(&mut self, mut s: State, result: Value) -> State {
        for r in 1..6 {
            s.set(r, Value::Unset);
        }
        s.set(0, result);
        s.at += 1;
        s
    }

    /// The same, of a number.
    pub(super) fn answers(&mut self, s: State, number: i64) -> State {
        let e = self.arena.number(number as u64, 64);
        self.after(s, Value::Num(e))
    }

    /// The same, of a call whose object had no room.
    pub(super) fn full_up(&mut self, mut s: State, access: Access, number: i64) -> State {
        s.accesses.push(access.ended("full"));
        self.answers(s, number)
    }

    /// A number as bytes in memory order.
    pub(super) fn split_bytes(&mut self, e: ExprId, bytes: u32) -> Vec<ExprId> {
        (0..bytes)
            .map(|i| self.arena.extract(e, 8 * i, 8))
            .collect()
    }

    /// Bytes in memory order as a number of that width.
    pub(super) fn joined_bytes(&mut self, bytes: &[ExprId]) -> ExprId {
        let parts: Vec<ExprId> = bytes.iter().rev().copied().collect();
        self.arena.concat(&parts)
    }

    /// A new symbol of this path.
    pub(super) fn unknown(
        &mut self,
        s: &mut State,
        what: &str,
        width: u32,
        origin: Origin,
    ) -> ExprId {
        let name = self.fresh(s, what);
        self.arena.sym(&name, width, origin)
    }

    /// Bytes of which nothing is known.
    pub(super) fn unknown_bytes(
        &mut self,
        s: &mut State,
        what: &str,
        bytes: u32,
        origin: Origin,
    ) -> Vec<ExprId> {
        let name = self.fresh(s, what);
        let mut out = Vec::new();
        while (out.len() as u32) < bytes {
            let from = out.len() as u32;
            let to = (from + 8).min(bytes);
            let word = self
                .arena
                .sym(&format!("{name}[{from}..{to}]"), 8 * (to - from), origin);
            out.extend(self.split_bytes(word, to - from));
        }
        out
    }

    /// The ways on: those of a condition that holds, and those of one that does not.
    pub(super) fn either_way(
        &mut self,
        s: Option<State>,
        condition: ExprId,
    ) -> (Option<State>, Option<State>) {
        match s {
            Some(s) => self.split(s, condition),
            None => (None, None),
        }
    }

    /// The way on that a condition leaves.
    pub(super) fn only(&mut self, s: State, condition: ExprId) -> Option<State> {
        self.split(s, condition).0
    }

    /// `a > b`, of signed numbers.
    pub(super) fn exceeds(&mut self, a: ExprId, b: i64) -> ExprId {
        let b = self.arena.number(b as u64, 64);
        self.arena.compare(Rel::SignedLess, b, a)
    }

    /// `a = b`
    pub(super) fn is(&mut self, a: ExprId, b: u64) -> ExprId {
        let width = self.arena.width(a);
        let b = self.arena.number(b, width);
        self.arena.compare(Rel::Eq, a, b)
    }

    /// `a + b`
    pub(super) fn plus(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.arena.binary(Bin::Add, a, b)
    }

    /// The lowest 32 bits, as a number of 64: what a helper takes of an argument that it calls `u32`.
    pub(super) fn low32(&mut self, e: ExprId) -> ExprId {
        let low = self.arena.extract(e, 0, 32);
        self.arena.resize(low, 64)
    }

    /// A register that holds a number.
    pub(super) fn number_in(&self, s: &State, r: usize) -> Result<ExprId, Gap> {
        self.num(s.reg(r))
    }

    /// A register that holds a number which is the same however the path was taken.
    pub(super) fn size_in(&mut self, s: &State, r: usize, h: &Helper) -> Result<u32, Gap> {
        let e = self.num(s.reg(r))?;
        match self.arena.constant(e) {
            Some(c) if c <= MOST_BYTES => Ok(c as u32),
            Some(c) => gap(format!("{} of {c} bytes", h.name)),
            None => match self.fixed(s, e) {
                Ok(c) if (0..=MOST_BYTES as i64).contains(&c) => Ok(c as u32),
                _ => gap(format!("{} of a computed number of bytes", h.name)),
            },
        }
    }

    /// The target of a register.
    pub(super) fn pointer_in(
        &self,
        s: &State,
        r: usize,
        h: &Helper,
    ) -> Result<(Region, ExprId), Gap> {
        match s.reg(r) {
            Value::Ptr(region, offset) => Ok((region, offset)),
            _ => gap(format!("an argument of {} is no pointer", h.name)),
        }
    }

    /// The bytes that an argument of this kind points to.
    pub(super) fn argument(
        &mut self,
        s: &mut State,
        h: &Helper,
        want: Arg,
        bytes: u32,
    ) -> Result<Vec<ExprId>, Gap> {
        let Some(at) = h.args.iter().position(|a| *a == want) else {
            return Ok(Vec::new());
        };
        let (region, offset) = self.pointer_in(s, at + 1, h)?;
        self.read(s, region, offset, bytes)
    }

    /// An access at the step that a path is at, of which nothing but this is known.
    pub(super) fn access(
        &self,
        s: &State,
        object: ObjectId,
        operation: &'static str,
        effect: Effect,
    ) -> Access {
        Access {
            object,
            entry: 0,
            operation,
            effect,
            key: Vec::new(),
            value: Vec::new(),
            offset: None,
            answer: None,
            outcome: None,
            bytes: 0,
            chosen: None,
            repeated: false,
            line: self.flow.steps.get(s.at).and_then(|s| s.line.clone()),
        }
    }
}

/// Most bytes that a call is followed with.
const MOST_BYTES: u64 = 4096;
