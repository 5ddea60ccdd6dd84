//! One instruction over gates.

use millrace_check::facts::{Access, FrameId, Kind, Step};
use millrace_object::helper;
use millrace_object::insn::{AluOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{Dialect, ObjectId};

use super::WINDOW;
use super::gate::Wire;
use super::walk::{BASE, Cell, State, Value, Walk};

impl Walk<'_> {
    pub(super) fn narrow(&mut self, width: Width, a: Wire) -> Wire {
        match width {
            Width::W64 => a,
            Width::W32 => self.gates.bits(a, 0, 32),
        }
    }

    pub(super) fn compare(&mut self, condition: Condition, width: Width, a: Wire, b: Wire) -> Wire {
        let (a, b) = (self.narrow(width, a), self.narrow(width, b));
        let bits = if width == Width::W64 { 64 } else { 32 };
        let g = &mut self.gates;
        match condition {
            Condition::Eq => g.equal(a, b),
            Condition::Ne => {
                let same = g.equal(a, b);
                g.not(same)
            }
            Condition::Lt => g.less(a, b),
            Condition::Gt => g.less(b, a),
            Condition::Ge => {
                let less = g.less(a, b);
                g.not(less)
            }
            Condition::Le => {
                let more = g.less(b, a);
                g.not(more)
            }
            Condition::SignedLt => g.less_signed(bits, a, b),
            Condition::SignedGt => g.less_signed(bits, b, a),
            Condition::SignedGe => {
                let less = g.less_signed(bits, a, b);
                g.not(less)
            }
            Condition::SignedLe => {
                let more = g.less_signed(bits, b, a);
                g.not(more)
            }
            Condition::Test => {
                let both = g.and(a, b);
                let none = g.not(both);
                g.not(none)
            }
        }
    }

    pub(super) fn arithmetic(&mut self, op: AluOp, width: Width, a: Wire, b: Wire) -> Wire {
        let (a, b) = (self.narrow(width, a), self.narrow(width, b));
        let amount = if width == Width::W64 { 6 } else { 5 };
        let g = &mut self.gates;
        let out = match op {
            AluOp::Mov => b,
            AluOp::Add => g.add(a, b),
            AluOp::Sub => g.sub(a, b),
            AluOp::Mul => g.mul(a, b),
            AluOp::And => g.and(a, b),
            AluOp::Or => g.or(a, b),
            AluOp::Xor => g.xor(a, b),
            AluOp::Lsh => {
                let by = g.bits(b, 0, amount);
                g.shl(a, by)
            }
            AluOp::Rsh => {
                let by = g.bits(b, 0, amount);
                g.shr(a, by)
            }
            AluOp::Arsh => {
                let by = g.bits(b, 0, amount);
                let bits = if width == Width::W64 { 64 } else { 32 };
                let a = g.extended(bits, a);
                let sign = g.bits(a, 63, 1);
                let ones = g.number(u64::MAX);
                let (inverse, plain) = (g.xor(a, ones), g.shr(a, by));
                let moved = g.shr(inverse, by);
                let negative = g.xor(moved, ones);
                g.select(sign, negative, plain)
            }
            AluOp::Div | AluOp::Mod => match self.gates.constant(b) {
                Some(n) if n.is_power_of_two() && op == AluOp::Div => {
                    self.gates.bits(a, n.trailing_zeros(), 64)
                }
                Some(n) if n.is_power_of_two() => self.gates.bits(a, 0, n.trailing_zeros()),
                _ => self.obstacle("a division"),
            },
            AluOp::SignedDiv | AluOp::SignedMod => self.obstacle("a division"),
        };
        self.narrow(width, out)
    }

    pub(super) fn order(&mut self, order: ByteOrder, bits: u32, a: Wire) -> Wire {
        if order == ByteOrder::ToLittle {
            return self.gates.bits(a, 0, bits);
        }
        let bytes = (0..bits / 8).rev();
        let parts = bytes.map(|b| (self.gates.bits(a, 8 * b, 8), 8)).collect();
        self.gates.concat(parts)
    }

    pub(super) fn plain(&mut self, step: &Step, insn: &Insn, state: &mut State) {
        let frame = step.frame;
        let set = |state: &mut State, reg: Reg, value: Value| {
            state.registers.insert((frame, reg), value);
        };
        match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let value = self.computed(step, op, width, (dst, src), state);
                set(state, dst, value);
            }
            Insn::Neg { width, dst } => {
                let (a, zero) = (self.register(state, frame, dst), self.gates.number(0));
                let a = self.narrow(width, a);
                let out = self.gates.sub(zero, a);
                let out = self.narrow(width, out);
                set(state, dst, Value::Number(out));
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let a = self.register(state, frame, src);
                let out = self.gates.extended(8 * from.bytes(), a);
                let out = self.narrow(width, out);
                set(state, dst, Value::Number(out));
            }
            Insn::ByteOrder { order, bits, dst } => {
                let a = self.register(state, frame, dst);
                let out = self.order(order, bits, a);
                set(state, dst, Value::Number(out));
            }
            Insn::LoadImm { dst, value } => {
                let value = match value {
                    Imm64::Number(n) => Value::Number(self.gates.number(n)),
                    Imm64::ObjectValue { object, offset } => {
                        Value::Object(object, u64::from(offset))
                    }
                    Imm64::Object(_) | Imm64::Function(_) => Value::Other,
                };
                set(state, dst, value);
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                let from = address(step, base, size)
                    .or_else(|| state.registers.get(&(frame, base)).cloned());
                let offset = match from {
                    // By the proof it includes the offset.
                    Some(Value::Object(..)) if is_known(step, size) => 0,
                    _ => offset,
                };
                let value = self.load(step, from.as_ref(), i64::from(offset), size, state);
                let value = match value {
                    Value::Number(n) if signed => {
                        Value::Number(self.gates.extended(8 * size.bytes(), n))
                    }
                    other => other,
                };
                set(state, dst, value);
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                let value = match src {
                    Operand::Imm(n) => Value::Number(self.gates.number(n as u64)),
                    Operand::Reg(reg) => {
                        let held = state.registers.get(&(frame, reg)).cloned();
                        held.unwrap_or(Value::Other)
                    }
                };
                let to = address(step, base, size)
                    .or_else(|| state.registers.get(&(frame, base)).cloned());
                self.store(to.as_ref(), i64::from(offset), size, value, state);
            }
            Insn::Call { helper } => {
                let named = helper::by_number(helper);
                let clock = named.is_some_and(|h| h.effects.time && h.args.is_empty());
                let out = match (clock, named) {
                    (true, _) => self.gates.time(),
                    (_, Some(h)) => self.obstacle(format!("a call of {}", h.name)),
                    _ => self.obstacle(format!("a call of helper {helper}")),
                };
                set(state, Reg(0), Value::Number(out));
            }
            Insn::Atomic { .. } => {
                self.obstacle("an atomic operation");
            }
            _ => {
                self.obstacle("this instruction");
            }
        }
    }

    pub(super) fn computed(
        &mut self,
        step: &Step,
        op: AluOp,
        width: Width,
        (dst, src): (Reg, Operand),
        state: &State,
    ) -> Value {
        let frame = step.frame;
        let held = |reg: Reg| state.registers.get(&(frame, reg)).cloned();
        let right = match src {
            Operand::Reg(reg) => held(reg),
            Operand::Imm(n) => Some(Value::Number(self.gates.number(n as u64))),
        };
        if op == AluOp::Mov && width == Width::W64 {
            return right.unwrap_or(Value::Other);
        }
        let shift = |n: u64| match op {
            AluOp::Add => Some(n),
            AluOp::Sub => Some(n.wrapping_neg()),
            _ => None,
        };
        let left = held(dst);
        let constant = match &right {
            Some(Value::Number(n)) => self.gates.constant(*n),
            _ => None,
        };
        let by = constant.and_then(shift).filter(|_| width == Width::W64);
        match (left, by) {
            (Some(Value::Stack(frame, at)), Some(by)) => {
                return Value::Stack(frame, at.wrapping_add(by as i32));
            }
            (Some(Value::Object(object, at)), Some(by)) => {
                return Value::Object(object, at.wrapping_add(by));
            }
            _ => {}
        }
        let b = self.operand(state, frame, src);
        if op == AluOp::Mov {
            return Value::Number(self.narrow(width, b));
        }
        let a = self.register(state, frame, dst);
        Value::Number(self.arithmetic(op, width, a, b))
    }

    pub(super) fn load(
        &mut self,
        step: &Step,
        from: Option<&Value>,
        offset: i64,
        size: Size,
        state: &State,
    ) -> Value {
        let bytes = size.bytes();
        match from.cloned() {
            Some(Value::Context) => Value::Number(self.context(offset, size)),
            Some(Value::Stack(frame, at)) => self.stack(state, frame, at + offset as i32, bytes),
            Some(Value::Object(object, at)) => {
                Value::Number(self.global(object, at.wrapping_add(offset as u64), bytes))
            }
            Some(Value::Number(address)) if step.access == Some(Access::Packet) => {
                let by = self.gates.number((offset as u64).wrapping_sub(BASE));
                let at = self.gates.add(address, by);
                Value::Number(self.packet(state, at, bytes))
            }
            _ => Value::Number(self.obstacle("a load from state or from several kinds of memory")),
        }
    }

    pub(super) fn stack(&mut self, state: &State, frame: FrameId, at: i32, bytes: u32) -> Value {
        let cells = (0..bytes as i32).map(|i| state.stack.get(&(frame, at + i)));
        let cells: Vec<Option<&Cell>> = cells.collect();
        if let Some(Some(Cell::Of(value, 0))) = cells.first()
            && bytes == 8
            && cells
                .iter()
                .zip(0..)
                .all(|(c, i)| matches!(c, Some(Cell::Of(v, n)) if v == value && *n == i))
        {
            return value.clone();
        }
        let mut parts = Vec::new();
        for cell in cells {
            let byte = match cell {
                Some(Cell::Byte(wire)) => *wire,
                Some(Cell::Of(..)) => self.obstacle("a part of an address as a number"),
                None => self.gates.number(0),
            };
            parts.push((byte, 8));
        }
        Value::Number(self.gates.concat(parts))
    }

    pub(super) fn global(&mut self, object: ObjectId, at: u64, bytes: u32) -> Wire {
        let global = self.program.objects.get(object.0);
        let content = global.filter(|g| g.read_only && g.kind.is_global());
        let content = content.and_then(|g| g.initial.as_deref());
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let part = content.and_then(|c| c.get(from..from.saturating_add(bytes as usize)));
        match part {
            Some(part) => {
                let number = part.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
                self.gates.number(number)
            }
            None => self.obstacle("a load from a variable that is no setting"),
        }
    }

    pub(super) fn context(&mut self, offset: i64, size: Size) -> Wire {
        let dialect = self.program.dialect;
        match (dialect, offset, size) {
            (_, 0 | 8, Size::B4) => self.gates.number(BASE),
            (_, 4, Size::B4) => {
                let (length, base) = (self.gates.length(), self.gates.number(BASE));
                self.gates.add(length, base)
            }
            // XDP programs count interfaces from 1.
            (Dialect::Xdp, 12, Size::B4) => {
                let (port, one) = (self.gates.port(), self.gates.number(1));
                self.gates.add(port, one)
            }
            (Dialect::Handlers, 12, Size::B4) => self.gates.port(),
            (Dialect::Handlers, 24, Size::B8) => self.gates.time(),
            (Dialect::Handlers, 32, Size::B4) => {
                let ports = self.program.ports.len().max(1);
                self.gates.number(ports as u64)
            }
            _ => self.obstacle("a field of the context that a sequencer does not know"),
        }
    }

    pub(super) fn packet(&mut self, state: &State, at: Wire, bytes: u32) -> Wire {
        if self.gates.most(at) >= WINDOW {
            return self.obstacle(format!(
                "a byte of the packet behind the first {WINDOW}, or at a place that is not bounded"
            ));
        }
        let known = self.gates.constant(at);
        if known.is_none() && !state.packet.is_empty() {
            return self.obstacle("bytes of the packet at a computed place after a write to it");
        }
        let mut parts = Vec::new();
        for i in 0..u64::from(bytes) {
            let n = self.gates.number(i);
            let offset = self.gates.add(at, n);
            let written = known.and_then(|at| state.packet.get(&(at + i)).copied());
            let byte = written.unwrap_or_else(|| self.gates.byte(offset));
            parts.push((byte, 8));
        }
        self.gates.concat(parts)
    }

    pub(super) fn store(
        &mut self,
        to: Option<&Value>,
        offset: i64,
        size: Size,
        value: Value,
        state: &mut State,
    ) {
        let bytes = size.bytes();
        match to.cloned() {
            Some(Value::Stack(frame, at)) => {
                for i in 0..bytes {
                    let cell = match &value {
                        Value::Number(n) => Cell::Byte(self.gates.bits(*n, 8 * i, 8)),
                        other => Cell::Of(other.clone(), i),
                    };
                    let place = at + offset as i32 + i as i32;
                    state.stack.insert((frame, place), cell);
                }
            }
            Some(Value::Number(address)) => {
                let by = self.gates.number((offset as u64).wrapping_sub(BASE));
                let at = self.gates.add(address, by);
                match (self.gates.constant(at).filter(|at| *at < WINDOW), value) {
                    (Some(at), Value::Number(n)) => {
                        for i in 0..bytes {
                            let byte = self.gates.bits(n, 8 * i, 8);
                            state.packet.insert(at + u64::from(i), byte);
                        }
                    }
                    _ => {
                        self.obstacle("a write to the packet at a computed place");
                    }
                }
            }
            _ => {
                self.obstacle("a store to state or to several kinds of memory");
            }
        }
    }
}

/// The bytes of one object that a step touches in every execution.
fn is_known(step: &Step, size: Size) -> bool {
    let [extent] = step.extents[..] else {
        return false;
    };
    matches!(step.access, Some(Access::Value(_))) && extent.to - extent.from == size.bytes()
}

/// The address that a register holds by the proof: what computes those of the context and of the stack is no part of the
/// slice.
fn address(step: &Step, base: Reg, size: Size) -> Option<Value> {
    match step.before.get(usize::from(base.0))? {
        Kind::Context => Some(Value::Context),
        Kind::Stack {
            frame,
            offset: Some(at),
        } => Some(Value::Stack(*frame, *at)),
        _ if is_known(step, size) => {
            let extent = step.extents.first()?;
            Some(Value::Object(extent.object, u64::from(extent.from)))
        }
        _ => None,
    }
}
