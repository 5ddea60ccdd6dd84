//! Bytes of a packet that a function has read or written already: they are not read again.
//!
//! Programs read the same header more than once: each element of a linked program reads it anew, and what updates a checksum loads
//! 16 bits of which it has just stored 8, for which a processor waits until the store has left its buffer. clang removes none of this: loads that carry a
//! proof are volatile, and a store through one pointer may change what another points to. Here it is known more exactly:
//!
//! - Addresses are terms ([`value`]). Two places with the same term are apart by a constant; those of different terms may be the same, unless both are so
//!   far from a third one: what is added to that is at most as large as arithmetic makes it, and at least what branches on the way say.
//! - A load or a store puts its bytes into a variable (`k0`, `k1`, …), one for each address and size. A store ends what is known of the bytes that it
//!   overlaps, and of all bytes of other terms. So does any call that changes packets ([`changes`]); where the packet may have moved, addresses are new terms.
//! - A load whose bytes are all held by variables, on every path to it, is made of these.
//!
//! Steps are visited once, each after all that lead to it; where one of these comes later (a loop) nothing is known. So no term
//! has a value of an earlier round.
//!
//! Checksums that are updated more than once are folded once ([`merged`]).
//!
//! Somebody else may write to a packet while a program runs (a shared ring). Bytes that are not read again are what was checked, as with a volatile load.
//! Under AddressSanitizer each of them is compared with the packet (`MR_KNOWN`, c/codegen.h).

mod fold;
mod merged;
mod state;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_check::alters::changes;
use millrace_check::facts::{Access, ArgFact, FrameId, Kind, Op, Step, StepId};
use millrace_check::planted::{self, Planted};
use millrace_object::helper;
use millrace_object::insn::{
    AluOp, AtomicOp, Condition, Imm64, Insn, Operand, REGISTERS, Reg, Size, Width,
};

pub use merged::{Addition, Stored, Sum};
use state::MOST_DISTANCE;
pub use state::State;
pub use state::{Run, Variable};
use value::{Id, Term};
pub use value::{Terms, Value};

use super::body::{Body, Purpose};
use super::forms::{self, is_pointer};
use super::slice::Role;

/// Functions of more steps are written as they are.
const MOST_STEPS: usize = 20_000;

/// Which loads of a function are made of what, and what is held for them.
#[derive(Clone, Default)]
pub struct Known {
    loads: BTreeMap<StepId, Vec<Run>>,
    holds: BTreeMap<StepId, Variable>,
    guards: BTreeMap<StepId, Guard>,
    merged: Rc<merged::Merged>,
}

/// Where straight code expects a load's bytes ([`super::straight`]).
#[derive(Clone)]
pub struct Guard {
    /// the first of them, counted from the packet's first byte
    pub at: u64,
    /// the statement where they are elsewhere
    pub leave: String,
}

impl Known {
    /// Of a function.
    pub fn of(body: &Body) -> Self {
        let order = body.slice.layout();
        if body.purpose == Purpose::Part || order.len() > MOST_STEPS {
            return Self::default();
        }
        let mut pass = Pass {
            body,
            terms: Terms::new(),
            variables: BTreeMap::new(),
            known: Self::default(),
            sums: merged::Found::default(),
        };
        pass.follow(&order);
        pass.known.merged = Rc::new(pass.sums.merged(&pass.terms));
        let used = pass.known.used().collect();
        pass.known.of_used(&used)
    }

    /// What a load is made of.
    pub fn load(&self, id: StepId) -> Option<&[Run]> {
        self.loads.get(&id).map(Vec::as_slice)
    }

    /// The variable that holds what a step loads or stores.
    pub fn holds(&self, id: StepId) -> Option<Variable> {
        self.holds.get(&id).copied()
    }

    /// What is looked at before a load.
    pub fn guarded(&self, id: StepId) -> Option<&Guard> {
        self.guards.get(&id)
    }

    /// What is added to a variable before a step, which adds the same to a fold.
    pub fn addition(&self, id: StepId) -> Option<Addition> {
        self.merged.additions.get(&id).copied()
    }

    /// The variable that a step's result goes to, too.
    pub fn taken(&self, id: StepId) -> Option<Sum> {
        self.merged.taken.get(&id).copied()
    }

    /// The variable that a store folds instead of what the program has folded.
    pub fn stored(&self, id: StepId) -> Option<Stored> {
        self.merged.stores.get(&id).copied()
    }

    /// A load is made of these.
    pub fn made(&mut self, id: StepId, runs: Vec<Run>) {
        self.loads.insert(id, runs);
    }

    /// A variable holds what a step loads or stores.
    pub fn hold(&mut self, id: StepId, variable: Variable) {
        self.holds.insert(id, variable);
    }

    /// Something is looked at before a load.
    pub fn guard(&mut self, id: StepId, at: u64, leave: String) {
        self.guards.insert(id, Guard { at, leave });
    }

    /// The variables of which loads are made.
    pub fn used(&self) -> impl Iterator<Item = Variable> {
        self.loads.values().flatten().map(|r| r.variable)
    }

    /// The variables that are held.
    pub fn held(&self) -> impl Iterator<Item = Variable> {
        self.holds.values().copied()
    }

    /// Without variables but these.
    pub fn of_used(&self, used: &BTreeSet<Variable>) -> Self {
        let mut known = self.clone();
        known.holds.retain(|_, variable| used.contains(variable));
        known
    }
}

/// The pass over one function.
struct Pass<'b, 'a> {
    body: &'b Body<'a>,
    terms: Terms,
    /// by address and size
    variables: BTreeMap<(Id, u64, u32), Variable>,
    known: Known,
    sums: merged::Found,
}

impl Pass<'_, '_> {
    fn follow(&mut self, order: &[StepId]) {
        let slice = self.body.slice;
        let mut leads: BTreeMap<StepId, usize> = BTreeMap::new();
        for id in order {
            for next in slice.successors(*id) {
                *leads.entry(next).or_default() += 1;
            }
        }
        let entered: BTreeSet<StepId> = slice.starts.iter().copied().collect();
        let mut incoming: BTreeMap<StepId, Vec<State>> = BTreeMap::new();
        for id in topological(self.body, &entered) {
            let came = incoming.remove(&id).unwrap_or_default();
            let all = came.len() == leads.get(&id).copied().unwrap_or(0) && !came.is_empty();
            let mut state = match all && !entered.contains(&id) {
                true => State::joined(id, came),
                false => State::unknown(id),
            };
            self.step(id, &mut state);
            let next = slice.successors(id);
            let fails = next.len() > 1 || !slice.step(id).outcomes.holds;
            let mut ways = [!fails, true].into_iter().zip(next).peekable();
            let mut left = Some(state);
            while let Some((holds, to)) = ways.next() {
                let state = match ways.peek() {
                    Some(_) => left.clone(),
                    None => left.take(),
                };
                if let Some(mut state) = state {
                    self.taken(id, holds, &mut state);
                    incoming.entry(to).or_default().push(state);
                }
            }
        }
    }

    /// What the outcome of a branch says of the least number that a value can be.
    fn taken(&mut self, id: StepId, holds: bool, state: &mut State) {
        let step = self.body.slice.step(id);
        let Op::Branch {
            insn:
                Insn::Branch {
                    condition,
                    width,
                    left,
                    right: Operand::Imm(right),
                    ..
                },
            ..
        } = step.op
        else {
            return;
        };
        let right = match width {
            Width::W32 => u64::from(right as u32),
            Width::W64 => right as u64,
        };
        let least = match (condition, holds) {
            (Condition::Ge, true) | (Condition::Lt, false) | (Condition::Eq, true) => right,
            (Condition::Gt, true) | (Condition::Le, false) => right.saturating_add(1),
            (Condition::Ne, false) => right,
            _ => return,
        };
        let value = state.register(&mut self.terms, step.frame, left.0);
        // Of larger numbers none is a distance, and each state would keep them.
        if least > 0 && self.terms.facts(value).most <= MOST_DISTANCE {
            state.at_least(value, least);
        }
    }

    fn step(&mut self, id: StepId, state: &mut State) {
        let slice = self.body.slice;
        let step = slice.step(id);
        let role = slice.role(id);
        match step.op {
            Op::Plain(insn) if role == Role::Run => self.plain(id, step, &insn, state),
            // It is done elsewhere, or not at all.
            Op::Plain(_) => *state = State::unknown(id),
            Op::Enter { frame, .. } => {
                state.leave(frame);
                for reg in 0..REGISTERS as u8 {
                    let value = match reg {
                        1..=5 => state.register(&mut self.terms, step.frame, reg),
                        _ => self.terms.value(Term::Result(id, frame, reg)),
                    };
                    state.set(frame, reg, value);
                }
            }
            Op::Leave { .. } => {
                let answer = state.register(&mut self.terms, step.frame, 0);
                state.leave(step.frame);
                if let Some(caller) = slice.flow.frames.get(step.frame.0).and_then(|f| f.caller) {
                    self.opaque(id, caller, 1..=5, state);
                    state.set(caller, 0, answer);
                }
            }
            Op::Jump { .. } | Op::Branch { .. } | Op::Exit => {}
        }
    }

    /// Registers of which nothing is known behind a step.
    fn opaque(
        &mut self,
        id: StepId,
        frame: FrameId,
        registers: impl IntoIterator<Item = u8>,
        state: &mut State,
    ) {
        for reg in registers {
            let value = self.terms.value(Term::Result(id, frame, reg));
            state.set(frame, reg, value);
        }
    }

    fn operand(&mut self, step: &Step, operand: Operand, state: &mut State) -> Value {
        match operand {
            Operand::Imm(n) => Value::constant(n as u64),
            Operand::Reg(reg) => state.register(&mut self.terms, step.frame, reg.0),
        }
    }

    fn plain(&mut self, id: StepId, step: &Step, insn: &Insn, state: &mut State) {
        let frame = step.frame;
        let (dst, value) = match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let left = match op {
                    AluOp::Mov => Value::constant(0),
                    _ => state.register(&mut self.terms, frame, dst.0),
                };
                let right = self.operand(step, src, state);
                let width = forms::width(step, width);
                let right = match (width, src) {
                    (Width::W32, Operand::Imm(n)) => Value::constant(u64::from(n as u32)),
                    _ => right,
                };
                let value = match (op, width) {
                    (AluOp::Mov, Width::W32) => {
                        self.terms.narrow(Size::B4, false, Width::W64, right)
                    }
                    _ => self.terms.alu(op, width, left, right),
                };
                match step.whole {
                    false => self.number(id, step, (op, width), [left, right], value),
                    // With numbers it takes the right one with its sign.
                    true if self.terms.facts(left).most < u64::MAX => {
                        return self.opaque(id, frame, [dst.0], state);
                    }
                    true => {}
                }
                (dst, value)
            }
            Insn::Neg { width, dst } => {
                let value = state.register(&mut self.terms, frame, dst.0);
                (dst, self.terms.value(Term::Negative(width, value)))
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let value = state.register(&mut self.terms, frame, src.0);
                (dst, self.terms.narrow(from, true, width, value))
            }
            Insn::ByteOrder { order, bits, dst } => {
                let value = state.register(&mut self.terms, frame, dst.0);
                (dst, self.terms.value(Term::Order(order, bits, value)))
            }
            Insn::LoadImm {
                dst,
                value: Imm64::Number(n),
            } => (dst, Value::constant(n)),
            Insn::Load { .. } => return self.load(id, step, insn, state),
            Insn::Store { .. } => return self.store(id, step, insn, state),
            Insn::Atomic { op, fetch, src, .. } => {
                match step.access {
                    Some(Access::Packet) => state.written_anywhere(),
                    Some(Access::Stack { frame, from, to }) => state.overwrite(frame, from, to),
                    Some(Access::Value(_) | Access::Record(_)) => {}
                    _ => *state = State::unknown(id),
                }
                let fetched = match op {
                    AtomicOp::CompareExchange => Some(0),
                    _ => fetch.then_some(src.0),
                };
                return self.opaque(id, frame, fetched, state);
            }
            Insn::Call { helper } => return self.call(id, step, helper, state),
            _ => match millrace_check::facts::written(insn) {
                Some(reg) => return self.opaque(id, frame, [reg.0], state),
                None => {
                    *state = State::unknown(id);
                    return;
                }
            },
        };
        state.set(frame, dst.0, value);
    }

    /// What arithmetic on numbers is for sums.
    fn number(
        &mut self,
        id: StepId,
        step: &Step,
        (op, width): (AluOp, Width),
        operands: [Value; 2],
        value: Value,
    ) {
        if step.after != Kind::Scalar || op == AluOp::Mov || operands.contains(&value) {
            return;
        }
        let [left, right] = operands.map(|v| self.terms.facts(v).most);
        let most = left.checked_add(right);
        let limit = match width {
            Width::W32 => u64::from(u32::MAX),
            Width::W64 => u64::MAX,
        };
        if op == AluOp::Add && most.is_some_and(|most| most <= limit) {
            self.sums.addition(&self.terms, id, value, operands);
        }
        self.sums.result(id, value);
    }

    fn load(&mut self, id: StepId, step: &Step, insn: &Insn, state: &mut State) {
        let Insn::Load {
            size,
            signed,
            dst,
            base,
            offset,
        } = *insn
        else {
            return;
        };
        let value = match step.access {
            Some(Access::Context { offset }) => {
                let term = Term::Context(offset, size, state.placed);
                Some(self.terms.value(term)).filter(|_| !signed)
            }
            Some(Access::Packet) => {
                let at = self.address(step, base, offset, state);
                let value = self.packet(id, step, (at, size), dst, state);
                value.map(|v| self.terms.narrow(size, signed, Width::W64, v))
            }
            Some(Access::Stack { frame, from, to }) if to - from == size.bytes() as i32 => {
                let value = state.slot((frame, from, size.bytes(), step.whole));
                match signed {
                    true => value.map(|v| self.terms.narrow(size, true, Width::W64, v)),
                    false => value,
                }
            }
            _ => None,
        };
        let value = match value {
            Some(value) => value,
            None if signed || step.after != Kind::Scalar => {
                return self.opaque(id, step.frame, [dst.0], state);
            }
            None => {
                let value = self.terms.value(Term::Result(id, step.frame, dst.0));
                self.terms.narrow(size, false, Width::W64, value)
            }
        };
        state.set(step.frame, dst.0, value);
    }

    fn address(&mut self, step: &Step, base: Reg, offset: i16, state: &mut State) -> Value {
        let base = state.register(&mut self.terms, step.frame, base.0);
        Value {
            plus: base.plus.wrapping_add(i64::from(offset) as u64),
            ..base
        }
    }

    /// A load from the packet: its value, zero-extended, if that is known.
    fn packet(
        &mut self,
        id: StepId,
        step: &Step,
        (at, size): (Value, Size),
        dst: Reg,
        state: &mut State,
    ) -> Option<Value> {
        let demanded = self.body.demand.after(self.body.slice, id, dst).any();
        if !demanded || step.after != Kind::Scalar {
            return None;
        }
        if let Some(runs) = state.load(at, size) {
            let value = match runs.as_slice() {
                [run] if self.whole(run.variable, size) => state.held(run.variable),
                _ => None,
            };
            self.known.loads.insert(id, runs);
            return value;
        }
        let variable = self.variable(at, size);
        let value = self.terms.value(Term::Result(id, step.frame, dst.0));
        let value = self.terms.narrow(size, false, Width::W64, value);
        state.hold(at, size, variable, value);
        self.known.holds.insert(id, variable);
        Some(value)
    }

    /// Whether a variable is of this size.
    fn whole(&self, variable: Variable, size: Size) -> bool {
        let mut all = self.variables.iter();
        all.any(|(of, v)| *v == variable && of.2 == size.bytes())
    }

    fn variable(&mut self, at: Value, size: Size) -> Variable {
        let next = self.variables.len() as Variable;
        let key = (at.term, at.plus, size.bytes());
        *self.variables.entry(key).or_insert(next)
    }

    fn store(&mut self, id: StepId, step: &Step, insn: &Insn, state: &mut State) {
        let Insn::Store {
            size,
            base,
            offset,
            src,
        } = *insn
        else {
            return;
        };
        let address = match src {
            Operand::Reg(reg) => is_pointer(step.before[usize::from(reg.0)]),
            Operand::Imm(_) => false,
        };
        let value = self.operand(step, src, state);
        let number = self.terms.narrow(size, false, Width::W64, value);
        match step.access {
            Some(Access::Packet) => {
                let at = self.address(step, base, offset, state);
                if !planted::is(Planted::EmitStoreForgotten) {
                    state.written(&self.terms, at, size);
                }
                if !address {
                    if size == Size::B2 {
                        self.sums.store(&self.terms, id, value);
                    }
                    let variable = self.variable(at, size);
                    state.hold(at, size, variable, number);
                    self.known.holds.insert(id, variable);
                }
            }
            Some(Access::Stack { frame, from, to }) if to - from == size.bytes() as i32 => {
                let kept = match address {
                    true => value,
                    false => number,
                };
                let slot = (frame, from, size.bytes(), step.whole);
                match !address || size == Size::B8 || step.whole {
                    true => state.keep(slot, kept),
                    false => state.overwrite(frame, from, to),
                }
            }
            Some(Access::Stack { frame, from, to }) => state.overwrite(frame, from, to),
            Some(Access::Value(_) | Access::Record(_)) => {}
            _ => *state = State::unknown(id),
        }
    }

    fn call(&mut self, id: StepId, step: &Step, number: u32, state: &mut State) {
        let Some(helper) = helper::by_number(number) else {
            *state = State::unknown(id);
            return;
        };
        if changes(step) {
            state.written_anywhere();
            state.placed = id;
        }
        for (arg, fact) in helper.args.iter().zip(&step.args) {
            match fact {
                ArgFact::Memory { access, .. } if arg.writes_memory() => match *access {
                    Access::Stack { frame, from, to } => state.overwrite(frame, from, to),
                    Access::Several => state.overwrite_stacks(),
                    _ => {}
                },
                _ => {}
            }
        }
        self.opaque(id, step.frame, 0..=5, state);
    }
}

/// The steps of a function, each behind those that lead to it but for loops: postorder, backwards.
fn topological(body: &Body, entered: &BTreeSet<StepId>) -> Vec<StepId> {
    let slice = body.slice;
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for start in entered {
        if !seen.insert(*start) {
            continue;
        }
        let mut open = vec![(*start, slice.successors(*start))];
        while let Some((id, left)) = open.last_mut() {
            match left.pop() {
                Some(next) if seen.insert(next) => open.push((next, slice.successors(next))),
                Some(_) => {}
                None => {
                    order.push(*id);
                    open.pop();
                }
            }
        }
    }
    order.reverse();
    order
}
