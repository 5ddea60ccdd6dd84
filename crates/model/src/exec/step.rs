//! One instruction.

use millrace_check::facts::{Op, StepId};
use millrace_object::insn::{
    AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, REGISTERS, Reg, Width,
};
use millrace_object::program::{Line, ObjectId};

use super::state::{Region, State, Value};
use super::{Engine, Gap};
use crate::expr::{Bin, ExprId, Rel};
use crate::model::Effect;

/// Outcome of a step.
pub(super) enum Next {
    /// the path goes on, perhaps in several ways
    On(Vec<State>),
    /// it ended with this verdict
    End(Box<State>, Value),
}

fn gap<T>(what: impl Into<String>) -> Result<T, Gap> {
    Err(Gap(what.into()))
}

impl Engine<'_> {
    pub(super) fn step(&mut self, mut s: State) -> Result<Next, Gap> {
        let Some(step) = self.flow.steps.get(s.at) else {
            return gap("ran off the program");
        };
        s.steps += 1;
        match step.op {
            Op::Exit => {
                let r0 = s.reg(0);
                Ok(Next::End(Box::new(s), r0))
            }
            Op::Jump { target } => {
                s.at = target.0;
                Ok(Next::On(vec![s]))
            }
            Op::Enter { frame, target } => {
                let mut regs = [Value::Unset; REGISTERS];
                for (r, slot) in regs.iter_mut().enumerate().take(6).skip(1) {
                    *slot = s.reg(r);
                }
                let zero = self.arena.number(0, 64);
                regs[10] = Value::Ptr(Region::Stack(frame), zero);
                s.stack.retain(|k, _| k.0 != frame);
                s.frames.push((frame, regs));
                s.at = target.0;
                Ok(Next::On(vec![s]))
            }
            Op::Leave { target } => {
                let r0 = s.reg(0);
                if let Some((frame, _)) = s.frames.pop() {
                    s.stack.retain(|k, _| k.0 != frame);
                }
                for r in 1..6 {
                    s.set(r, Value::Unset);
                }
                s.set(0, r0);
                s.at = target.0;
                Ok(Next::On(vec![s]))
            }
            Op::Branch { insn, target } => self.branch(s, insn, target),
            Op::Plain(Insn::Call { helper }) => Ok(Next::On(self.call(s, helper)?)),
            // No packet takes this path: in a checked program no access goes through a null pointer. Behind a cut,
            // where a condition may have become any number, the guard does not say so.
            Op::Plain(insn) if self.goes_through_null(&s, insn) => Ok(Next::On(Vec::new())),
            Op::Plain(insn) => {
                let line = step.line.as_ref();
                let mut out = self.by_offset(s, insn);
                for s in &mut out {
                    self.plain(s, insn, line)?;
                    s.at += 1;
                }
                Ok(Next::On(out))
            }
        }
    }

    fn operand(&mut self, s: &State, o: Operand) -> Value {
        match o {
            Operand::Reg(r) => s.reg(usize::from(r.0)),
            Operand::Imm(i) => Value::Num(self.arena.number(i as u64, 64)),
        }
    }

    fn branch(&mut self, s: State, insn: Insn, target: StepId) -> Result<Next, Gap> {
        let Insn::Branch {
            condition,
            width,
            left,
            right,
            ..
        } = insn
        else {
            return gap("a branch that is none");
        };
        let facts = self
            .flow
            .steps
            .get(s.at)
            .map(|s| s.outcomes)
            .unwrap_or_default();
        let (a, b) = (s.reg(usize::from(left.0)), self.operand(&s, right));
        if self.guide.is_some() {
            // Where only one way was ever possible nothing decided.
            let decides = facts.holds && facts.fails;
            let condition = decides.then(|| self.condition(condition, width, a, b).ok());
            let only = (!decides).then_some(facts.holds);
            return self.branch_along(s, condition.flatten(), only, target);
        }
        let (yes, no) = if facts.holds && facts.fails {
            let condition = self.condition(condition, width, a, b)?;
            if let Some(s) = self.picked(&s, condition, target.0) {
                return Ok(Next::On(vec![s]));
            }
            self.split(s, condition)
        } else if facts.holds {
            (Some(s), None)
        } else {
            (None, Some(s))
        };
        let mut out = Vec::new();
        if let Some(mut s) = no {
            s.at += 1;
            out.push(s);
        }
        if let Some(mut s) = yes {
            s.at = target.0;
            out.push(s);
        }
        Ok(Next::On(out))
    }

    fn condition(&mut self, c: Condition, width: Width, a: Value, b: Value) -> Result<ExprId, Gap> {
        let mut bits = if width == Width::W32 { 32 } else { 64 };
        // Offsets are below zero where a packet has grown in front and in a frame of the stack. No address wraps within a
        // region, so the order of addresses, with a sign or without, is that of offsets with their signs.
        let places = matches!((a, b), (Value::Ptr(r, _), Value::Ptr(q, _)) if r == q);
        let less_than = if places { Rel::SignedLess } else { Rel::Less };
        let (a, b) = match (a, b) {
            (Value::Num(a), Value::Num(b)) => (a, b),
            // At 32 bits, too, their places are compared, see `Kind`.
            (Value::Ptr(r, a), Value::Ptr(q, b)) if r == q => {
                bits = 64;
                (a, b)
            }
            (Value::Inner(_, m), Value::Inner(_, n)) => (m, n),
            (Value::Inner(shape, n), Value::Object(o))
            | (Value::Object(o), Value::Inner(shape, n)) => (n, self.named_map(shape, o)),
            // Pointers are not null, and no pointer is another object's.
            (Value::Ptr(..) | Value::Object(_) | Value::Inner(..), Value::Num(n))
            | (Value::Num(n), Value::Ptr(..) | Value::Object(_) | Value::Inner(..))
                if self.arena.constant(n) == Some(0) =>
            {
                return match c {
                    Condition::Eq => Ok(self.arena.truth(false)),
                    Condition::Ne => Ok(self.arena.truth(true)),
                    _ => gap("a pointer is ordered against null"),
                };
            }
            (Value::Object(a), Value::Object(b)) => {
                return match c {
                    Condition::Eq => Ok(self.arena.truth(a == b)),
                    Condition::Ne => Ok(self.arena.truth(a != b)),
                    _ => gap("objects are ordered"),
                };
            }
            (a, b) => return gap(format!("a comparison of {a:?} and {b:?}")),
        };
        let (a, b) = (self.arena.resize(a, bits), self.arena.resize(b, bits));
        let arena = &mut self.arena;
        let mut less = |rel, a, b, not| {
            let e = arena.compare(rel, a, b);
            if not { arena.not(e) } else { e }
        };
        Ok(match c {
            Condition::Eq => less(Rel::Eq, a, b, false),
            Condition::Ne => less(Rel::Eq, a, b, true),
            Condition::Gt => less(less_than, b, a, false),
            Condition::Ge => less(less_than, a, b, true),
            Condition::Lt => less(less_than, a, b, false),
            Condition::Le => less(less_than, b, a, true),
            Condition::SignedGt => less(Rel::SignedLess, b, a, false),
            Condition::SignedGe => less(Rel::SignedLess, a, b, true),
            Condition::SignedLt => less(Rel::SignedLess, a, b, false),
            Condition::SignedLe => less(Rel::SignedLess, b, a, true),
            Condition::Test => {
                let both = arena.binary(Bin::And, a, b);
                let zero = arena.number(0, bits);
                let e = arena.compare(Rel::Eq, both, zero);
                arena.not(e)
            }
        })
    }

    /// The number that a map in a map has if it is this one of the program: from 1, in the order of the
    /// objects, as the host names it (docs/maps.md); 0 if it cannot be.
    fn named_map(&mut self, shape: ObjectId, object: ObjectId) -> ExprId {
        let objects = &self.program.objects;
        let pair = objects.get(object.0).zip(objects.get(shape.0));
        let fits = pair.is_some_and(|(o, shape)| o.fits(shape));
        let number = if fits { object.0 as u64 + 1 } else { 0 };
        self.arena.number(number, 32)
    }

    pub(super) fn plain(
        &mut self,
        s: &mut State,
        insn: Insn,
        line: Option<&Line>,
    ) -> Result<(), Gap> {
        let at = |r: Reg| usize::from(r.0);
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let b = self.operand(s, src);
                let a = s.reg(at(dst));
                let value = self.alu(op, width, a, b)?;
                s.set(at(dst), value);
            }
            Insn::Neg { width, dst } => {
                let zero = Value::Num(self.arena.number(0, 64));
                let value = self.alu(AluOp::Sub, width, zero, s.reg(at(dst)))?;
                s.set(at(dst), value);
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let e = self.num(s.reg(at(src)))?;
                let low = self.arena.extract(e, 0, 8 * from.bytes());
                let bits = if width == Width::W32 { 32 } else { 64 };
                let wide = self.arena.sign_extend(low, bits);
                s.set(at(dst), Value::Num(self.arena.resize(wide, 64)));
            }
            Insn::ByteOrder { order, bits, dst } => {
                let e = self.num(s.reg(at(dst)))?;
                let low = if order == ByteOrder::ToLittle {
                    self.arena.extract(e, 0, bits)
                } else {
                    self.arena.swap(e, bits)
                };
                s.set(at(dst), Value::Num(self.arena.resize(low, 64)));
            }
            Insn::LoadImm { dst, value } => {
                let value = match value {
                    Imm64::Number(n) => Value::Num(self.arena.number(n, 64)),
                    Imm64::Object(o) => Value::Object(o),
                    Imm64::ObjectValue { object, offset } => {
                        let place = self.global(s, object);
                        let offset = self.arena.number(u64::from(offset), 64);
                        Value::Ptr(Region::Place(place), offset)
                    }
                    // Nothing is read through it: the calls are laid out as frames.
                    Imm64::Function(_) => Value::Unset,
                };
                s.set(at(dst), value);
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                let (region, o) = self.address(s.reg(at(base)), offset)?;
                let mut value = self.load(s, region, o, size.bytes(), line)?;
                if let (true, Value::Num(e)) = (signed, value) {
                    let low = self.arena.extract(e, 0, 8 * size.bytes());
                    value = Value::Num(self.arena.sign_extend(low, 64));
                }
                s.set(at(dst), value);
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                let place = self.address(s.reg(at(base)), offset)?;
                let value = self.operand(s, src);
                self.store(s, place, size.bytes(), value, line)?;
            }
            Insn::Atomic {
                op,
                fetch,
                size,
                base,
                offset,
                src,
            } => {
                let place = self.address(s.reg(at(base)), offset)?;
                self.atomic(s, (op, fetch, size.bytes()), place, src, line)?;
            }
            _ => return gap("an instruction that has no meaning here"),
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        s: &mut State,
        (op, fetch, bytes): (AtomicOp, bool, u32),
        (region, offset): (Region, ExprId),
        src: Reg,
        line: Option<&Line>,
    ) -> Result<(), Gap> {
        let from = usize::from(src.0);
        let array = self.array(s, region, offset, bytes);
        let old = match &array {
            Some(array) => self.chosen(s, array)?,
            None => {
                let mut parts = self.read(s, region, offset, bytes)?;
                parts.reverse();
                self.arena.concat(&parts)
            }
        };
        let value = self.num(s.reg(from))?;
        let value = self.arena.resize(value, 8 * bytes);
        let new = match op {
            AtomicOp::Add => self.arena.binary(Bin::Add, old, value),
            AtomicOp::Or => self.arena.binary(Bin::Or, old, value),
            AtomicOp::And => self.arena.binary(Bin::And, old, value),
            AtomicOp::Xor => self.arena.binary(Bin::Xor, old, value),
            AtomicOp::Exchange => value,
            AtomicOp::CompareExchange => {
                let expected = self.num(s.reg(0))?;
                let expected = self.arena.resize(expected, 8 * bytes);
                let same = self.arena.compare(Rel::Eq, old, expected);
                self.arena.ite(same, value, old)
            }
        };
        let adds = op == AtomicOp::Add && !fetch;
        let effect = if adds { Effect::Add } else { Effect::Write };
        if let Some(array) = &array {
            self.choose(s, array, new)?;
            self.note_chosen(s, array, effect, "atomic", line)?;
        } else {
            let parts: Vec<ExprId> = (0..bytes)
                .map(|i| self.arena.extract(new, 8 * i, 8))
                .collect();
            self.write(s, region, offset, &parts)?;
            if let Region::Place(p) = region {
                self.note(s, p, (offset, bytes), effect, "atomic", &parts, line)?;
            }
        }
        let old = Value::Num(self.arena.resize(old, 64));
        if op == AtomicOp::CompareExchange {
            s.set(0, old);
        } else if fetch {
            s.set(from, old);
        }
        Ok(())
    }

    pub(super) fn num(&self, v: Value) -> Result<ExprId, Gap> {
        match v {
            Value::Num(e) => Ok(e),
            _ => gap("a pointer is used as a number"),
        }
    }

    fn goes_through_null(&self, s: &State, insn: Insn) -> bool {
        let (Insn::Load { base, .. } | Insn::Store { base, .. } | Insn::Atomic { base, .. }) = insn
        else {
            return false;
        };
        match s.reg(usize::from(base.0)) {
            Value::Num(e) => self.arena.constant(e) == Some(0),
            _ => false,
        }
    }

    fn address(&mut self, v: Value, offset: i16) -> Result<(Region, ExprId), Gap> {
        let Value::Ptr(region, e) = v else {
            return gap("a number is used as an address");
        };
        let by = self.arena.number(offset as u64, 64);
        Ok((region, self.arena.binary(Bin::Add, e, by)))
    }

    /// What a pointer is moved by: at 32 bits a signed number of those.
    fn way(&mut self, width: Width, n: ExprId) -> ExprId {
        if width == Width::W64 {
            return n;
        }
        let low = self.arena.extract(n, 0, 32);
        self.arena.sign_extend(low, 64)
    }

    fn alu(&mut self, op: AluOp, width: Width, a: Value, b: Value) -> Result<Value, Gap> {
        if op == AluOp::Mov {
            return match (width, b) {
                (Width::W32, Value::Num(e)) => {
                    let low = self.arena.extract(e, 0, 32);
                    Ok(Value::Num(self.arena.resize(low, 64)))
                }
                // The whole pointer, see `Kind`.
                _ => Ok(b),
            };
        }
        match (op, a, b) {
            (AluOp::Add, Value::Ptr(r, e), Value::Num(n))
            | (AluOp::Add, Value::Num(n), Value::Ptr(r, e)) => {
                let n = self.way(width, n);
                return Ok(Value::Ptr(r, self.arena.binary(Bin::Add, e, n)));
            }
            (AluOp::Sub, Value::Ptr(r, e), Value::Num(n)) => {
                let n = self.way(width, n);
                return Ok(Value::Ptr(r, self.arena.minus(e, n)));
            }
            (AluOp::Sub, Value::Ptr(r, e), Value::Ptr(q, f)) if r == q => {
                let mut d = self.arena.minus(e, f);
                if width == Width::W32 {
                    let low = self.arena.extract(d, 0, 32);
                    d = self.arena.resize(low, 64);
                }
                return Ok(Value::Num(d));
            }
            _ => {}
        }
        let bits = if width == Width::W32 { 32 } else { 64 };
        let (a, b) = (self.num(a)?, self.num(b)?);
        let (a, mut b) = (self.arena.resize(a, bits), self.arena.resize(b, bits));
        let bin = match op {
            AluOp::Add => Bin::Add,
            AluOp::Sub => {
                let d = self.arena.minus(a, b);
                return Ok(Value::Num(self.arena.resize(d, 64)));
            }
            AluOp::Mul => Bin::Mul,
            AluOp::Div => Bin::Div,
            AluOp::SignedDiv => Bin::SignedDiv,
            AluOp::Mod => Bin::Rem,
            AluOp::SignedMod => Bin::SignedRem,
            AluOp::Or => Bin::Or,
            AluOp::And => Bin::And,
            AluOp::Xor => Bin::Xor,
            AluOp::Lsh => Bin::Shl,
            AluOp::Rsh => Bin::Shr,
            AluOp::Arsh => Bin::Sar,
            AluOp::Mov => return Ok(Value::Num(b)),
        };
        if matches!(bin, Bin::Shl | Bin::Shr | Bin::Sar) {
            let most = self.arena.number(u64::from(bits) - 1, bits);
            b = self.arena.binary(Bin::And, b, most);
        }
        let e = self.arena.binary(bin, a, b);
        Ok(Value::Num(self.arena.resize(e, 64)))
    }
}
