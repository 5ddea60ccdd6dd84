//! The steps of `extract`, run over gates.

use std::collections::BTreeMap;

use millrace_check::facts::{Access, Flow, FrameId, Kind, Op, Step, StepId};
use millrace_object::Program;
use millrace_object::helper;
use millrace_object::insn::{AluOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{Dialect, ObjectId};

use super::WINDOW;
use super::gates::{Gates, Wire};
use crate::expr::Expr;
use crate::graph::Graph;
use crate::{History, Part, Refusal, Site};

/// Where the packet lies: an address of 32 bits that is not null. No number depends on which.
const BASE: u64 = 1 << 20;

/// How many iterations of loops are laid out one behind the other.
const MOST_ITERATIONS: usize = 32;
/// The most gates that are made.
const MOST_GATES: usize = 20_000;
const LOOP: &str = "a loop before the first access to state that has no bound, or more than 32 iterations: hardware has no loops";

/// What comes of a walk.
pub struct Made {
    pub gates: Gates,
    pub touch: Wire,
    pub row: Vec<Wire>,
}

/// What a register holds.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    /// a number, or an address in the packet, from [`BASE`] on
    Number(Wire),
    /// an address of a stack
    Stack(FrameId, i32),
    /// an address in the value of a section of variables
    Object(ObjectId, u64),
    Context,
    /// something that nothing may depend on
    Other,
}

/// A byte of a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Cell {
    Byte(Wire),
    /// a byte of an address
    Of(Value, u32),
}

#[derive(Clone, Default)]
struct State {
    registers: BTreeMap<(FrameId, Reg), Value>,
    stack: BTreeMap<(FrameId, i32), Cell>,
    kept: BTreeMap<StepId, Wire>,
    /// bytes that were written, by offset
    packet: BTreeMap<u64, Wire>,
}

/// A way to a step: the conditions that have to hold, and what places hold then.
struct Way {
    conditions: Vec<Wire>,
    state: State,
}

struct Walk<'a> {
    program: &'a Program,
    flow: &'a Flow,
    part: &'a Part,
    gates: Gates,
    /// of the step at hand, or an obstacle that was met in it
    wrong: Option<String>,
}

/// Runs the steps.
pub fn walk(
    program: &Program,
    flow: &Flow,
    part: &Part,
    history: &History,
) -> Result<Made, Refusal> {
    let mut walk = Walk {
        program,
        flow,
        part,
        gates: Gates::default(),
        wrong: None,
    };
    let graph = Graph::of(flow);
    let mut place = vec![usize::MAX; graph.blocks.len()];
    for (at, block) in graph.order.iter().enumerate() {
        place[*block] = at;
    }
    // Steps in an order in which all ways to one come before it.
    let key = |at: usize| {
        let block = graph.of.get(at).copied().flatten();
        block.map(|b| (place[b], at))
    };
    let mut state = State::default();
    state.registers.insert((FrameId(0), Reg(1)), Value::Context);
    state
        .registers
        .insert((FrameId(0), Reg(10)), Value::Stack(FrameId(0), 0));
    let first = Way {
        conditions: Vec::new(),
        state,
    };
    // A loop is unrolled: each iteration comes behind all of the one before, and ways that leave it in different ones do not
    // meet again.
    let mut pending: BTreeMap<(usize, (usize, usize)), Vec<Way>> = BTreeMap::new();
    pending.entry((0, (0, 0))).or_default().push(first);
    let mut touch = walk.gates.number(0);
    let zero = walk.gates.number(0);
    // Without a row nothing looks at it, so that the first site's is the row of all.
    let mut row: Option<Vec<Wire>> = None;
    while let Some(((iteration, now), ways)) = pending.pop_first() {
        let at = now.1;
        if walk.gates.count() > MOST_GATES {
            return Err(walk.refusal(at, "the computation of a row is too large for a circuit"));
        }
        let way = walk.met(ways);
        if let Some(number) = part.sites.iter().position(|s| s.step.0 == at) {
            let all = walk.all(&way.conditions);
            let site = &part.sites[number];
            let bytes = walk.fill(history, number, site, &way.state);
            row = Some(match row {
                None => bytes,
                Some(row) => {
                    let each = row.into_iter().zip(bytes);
                    each.map(|(to, from)| walk.gates.select(all, from, to))
                        .collect()
                }
            });
            touch = walk.gates.or(touch, all);
            walk.answer(at)?;
            continue;
        }
        let next = walk.step(at, way);
        walk.answer(at)?;
        for (to, way) in next {
            match key(to) {
                Some(then) if then > now => {
                    pending.entry((iteration, then)).or_default().push(way);
                }
                Some(_) if iteration >= MOST_ITERATIONS => {
                    return Err(walk.refusal(at, LOOP));
                }
                Some(then) => pending.entry((iteration + 1, then)).or_default().push(way),
                None => {}
            }
        }
    }
    let gates = walk.gates;
    let row = row.unwrap_or_else(|| vec![zero; history.bytes as usize]);
    Ok(Made { gates, touch, row })
}

impl Walk<'_> {
    fn refusal(&self, at: usize, reason: &str) -> Refusal {
        Refusal {
            object: None,
            line: self.flow.steps.get(at).and_then(|s| s.line.clone()),
            reason: reason.into(),
        }
    }

    fn answer(&mut self, at: usize) -> Result<(), Refusal> {
        match self.wrong.take() {
            Some(reason) => Err(self.refusal(at, &reason)),
            None => Ok(()),
        }
    }

    /// What is met in place of a number.
    fn obstacle(&mut self, what: impl Into<String>) -> Wire {
        self.wrong.get_or_insert(what.into());
        self.gates.number(0)
    }

    fn all(&mut self, conditions: &[Wire]) -> Wire {
        let mut all = self.gates.number(1);
        for c in conditions {
            all = self.gates.and(*c, all);
        }
        all
    }

    /// One way where several meet.
    fn met(&mut self, mut ways: Vec<Way>) -> Way {
        let Some(mut way) = ways.pop() else {
            return Way {
                conditions: Vec::new(),
                state: State::default(),
            };
        };
        while let Some(other) = ways.pop() {
            let pairs = way.conditions.iter().zip(&other.conditions);
            let common = pairs.take_while(|(a, b)| a == b).count();
            let (first, second) = (
                self.all(&way.conditions[common..]),
                self.all(&other.conditions[common..]),
            );
            let state = self.joined(first, way.state, &other.state);
            let either = self.gates.or(first, second);
            way.conditions.truncate(common);
            if self.gates.constant(either) != Some(1) {
                way.conditions.push(either);
            }
            way.state = state;
        }
        way
    }

    /// Places as in `a` where `c` holds, else as in `b`.
    fn joined(&mut self, c: Wire, a: State, b: &State) -> State {
        let mut out = State::default();
        for (place, x) in a.registers {
            let Some(y) = b.registers.get(&place) else {
                continue;
            };
            let value = match (x, y) {
                (Value::Number(x), Value::Number(y)) => Value::Number(self.gates.select(c, x, *y)),
                (x, y) if x == *y => x,
                _ => Value::Other,
            };
            out.registers.insert(place, value);
        }
        for (place, x) in a.stack {
            let cell = match (x, b.stack.get(&place)) {
                (Cell::Byte(x), Some(Cell::Byte(y))) => Cell::Byte(self.gates.select(c, x, *y)),
                (x, Some(y)) if x == *y => x,
                (_, Some(_)) => Cell::Of(Value::Other, 0),
                // Nothing may read what is there on one side only.
                (_, None) => continue,
            };
            out.stack.insert(place, cell);
        }
        let zero = self.gates.number(0);
        for step in a.kept.keys().chain(b.kept.keys()) {
            let of = |s: &State| s.kept.get(step).copied().unwrap_or(zero);
            let (x, y) = (of_kept(&a.kept, *step, zero), of(b));
            out.kept.insert(*step, self.gates.select(c, x, y));
        }
        let written: Vec<u64> = a.packet.keys().chain(b.packet.keys()).copied().collect();
        for at in written {
            let offset = self.gates.number(at);
            let before = self.gates.byte(offset);
            let x = a.packet.get(&at).copied().unwrap_or(before);
            let y = b.packet.get(&at).copied().unwrap_or(before);
            out.packet.insert(at, self.gates.select(c, x, y));
        }
        out
    }

    /// A step; the ways on from it.
    fn step(&mut self, at: usize, mut way: Way) -> Vec<(usize, Way)> {
        let Some(step) = self.flow.steps.get(at) else {
            return Vec::new();
        };
        match step.op {
            Op::Exit => Vec::new(),
            Op::Jump { target } => vec![(target.0, way)],
            Op::Enter { frame, target } => {
                for reg in (1..=5).map(Reg) {
                    let value = way.state.registers.get(&(step.frame, reg)).cloned();
                    if let Some(value) = value {
                        way.state.registers.insert((frame, reg), value);
                    }
                }
                let stack = Value::Stack(frame, 0);
                way.state.registers.insert((frame, Reg(10)), stack);
                vec![(target.0, way)]
            }
            Op::Leave { target } => {
                let caller = self.flow.frames.get(step.frame.0).and_then(|f| f.caller);
                let value = way.state.registers.get(&(step.frame, Reg(0))).cloned();
                if let (Some(caller), Some(value)) = (caller, value) {
                    way.state.registers.insert((caller, Reg(0)), value);
                }
                vec![(target.0, way)]
            }
            Op::Branch { insn, target } => match self.part.extract.jumps.get(&StepId(at)) {
                Some(Some(to)) => vec![(to.0, way)],
                Some(None) => Vec::new(),
                None => self.branch(step, &insn, (at + 1, target.0), way),
            },
            Op::Plain(insn) => {
                if self.part.extract.runs.get(at) == Some(&true) {
                    self.plain(step, &insn, &mut way.state);
                    if self.part.kept.binary_search(&StepId(at)).is_ok()
                        && let Some(reg) = millrace_check::facts::written(&insn)
                    {
                        let value = self.register(&way.state, step.frame, reg);
                        way.state.kept.insert(StepId(at), value);
                    }
                }
                vec![(at + 1, way)]
            }
        }
    }

    fn branch(
        &mut self,
        step: &Step,
        insn: &Insn,
        (next, target): (usize, usize),
        way: Way,
    ) -> Vec<(usize, Way)> {
        match (step.outcomes.holds, step.outcomes.fails) {
            (true, false) => return vec![(target, way)],
            (false, true) => return vec![(next, way)],
            _ => {}
        }
        let Insn::Branch {
            condition,
            width,
            left,
            right,
            ..
        } = *insn
        else {
            return Vec::new();
        };
        let a = self.register(&way.state, step.frame, left);
        let b = self.operand(&way.state, step.frame, right);
        let holds = self.compare(condition, width, a, b);
        match self.gates.constant(holds) {
            Some(0) => return vec![(next, way)],
            Some(_) => return vec![(target, way)],
            None => {}
        }
        let fails = self.gates.not(holds);
        let with = |c: Wire| {
            let mut conditions = way.conditions.clone();
            conditions.push(c);
            conditions
        };
        let taken = Way {
            conditions: with(holds),
            state: way.state.clone(),
        };
        let other = Way {
            conditions: with(fails),
            state: way.state,
        };
        vec![(target, taken), (next, other)]
    }

    fn register(&mut self, state: &State, frame: FrameId, reg: Reg) -> Wire {
        match state.registers.get(&(frame, reg)) {
            Some(Value::Number(wire)) => *wire,
            Some(_) => self.obstacle("an address of the stack or of state as a number"),
            // No execution reads it.
            None => self.gates.number(0),
        }
    }

    fn operand(&mut self, state: &State, frame: FrameId, operand: Operand) -> Wire {
        match operand {
            Operand::Imm(n) => self.gates.number(n as u64),
            Operand::Reg(reg) => self.register(state, frame, reg),
        }
    }

    fn narrow(&mut self, width: Width, a: Wire) -> Wire {
        match width {
            Width::W64 => a,
            Width::W32 => self.gates.bits(a, 0, 32),
        }
    }

    fn compare(&mut self, condition: Condition, width: Width, a: Wire, b: Wire) -> Wire {
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

    fn arithmetic(&mut self, op: AluOp, width: Width, a: Wire, b: Wire) -> Wire {
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

    fn order(&mut self, order: ByteOrder, bits: u32, a: Wire) -> Wire {
        if order == ByteOrder::ToLittle {
            return self.gates.bits(a, 0, bits);
        }
        let bytes = (0..bits / 8).rev();
        let parts = bytes.map(|b| (self.gates.bits(a, 8 * b, 8), 8)).collect();
        self.gates.concat(parts)
    }

    fn plain(&mut self, step: &Step, insn: &Insn, state: &mut State) {
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
                let value = self.load(step, from, i64::from(offset), size, state);
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
                self.store(to, i64::from(offset), size, value, state);
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

    fn computed(
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

    fn load(
        &mut self,
        step: &Step,
        from: Option<Value>,
        offset: i64,
        size: Size,
        state: &State,
    ) -> Value {
        let bytes = size.bytes();
        match from {
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

    fn stack(&mut self, state: &State, frame: FrameId, at: i32, bytes: u32) -> Value {
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

    fn global(&mut self, object: ObjectId, at: u64, bytes: u32) -> Wire {
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

    fn context(&mut self, offset: i64, size: Size) -> Wire {
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

    fn packet(&mut self, state: &State, at: Wire, bytes: u32) -> Wire {
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

    fn store(
        &mut self,
        to: Option<Value>,
        offset: i64,
        size: Size,
        value: Value,
        state: &mut State,
    ) {
        let bytes = size.bytes();
        match to {
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

    /// The bytes of a site's row.
    fn fill(&mut self, history: &History, number: usize, site: &Site, state: &State) -> Vec<Wire> {
        let zero = self.gates.number(0);
        // The time is the sequencer's to set.
        let mut parts: Vec<(Wire, u32)> = vec![(zero, history.time_bits)];
        let which = self.gates.number(number as u64);
        parts.push((which, history.selector_bits()));
        for field in &site.fields {
            let value = self.expression(&field.from, state, site.step);
            let mut at = 0;
            while at < 64 {
                let bits = (field.mask >> at).trailing_ones();
                if bits > 0 {
                    parts.push((self.gates.bits(value, at, bits), bits));
                }
                at += bits.max(1);
            }
        }
        (0..history.bytes)
            .map(|byte| {
                let (from, mut at, mut inside) = (8 * byte, 0, Vec::new());
                for &(wire, bits) in &parts {
                    let (first, last) = (from.max(at), (from + 8).min(at + bits));
                    if first < last {
                        let part = self.gates.bits(wire, first - at, last - first);
                        inside.push((part, last - first));
                    }
                    at += bits;
                }
                self.gates.concat(inside)
            })
            .collect()
    }

    fn expression(&mut self, expr: &Expr, state: &State, site: StepId) -> Wire {
        let dialect = self.program.dialect;
        match expr {
            Expr::Number(n) => self.gates.number(*n),
            Expr::Time => self.gates.time(),
            Expr::Register(frame, reg) | Expr::Pointer(frame, reg) => {
                self.register(state, *frame, *reg)
            }
            Expr::Stack(frame, at) => match self.stack(state, *frame, *at, 1) {
                Value::Number(n) => n,
                _ => self.obstacle("an address in a row"),
            },
            Expr::Kept(step) => {
                let zero = self.gates.number(0);
                of_kept(&state.kept, *step, zero)
            }
            Expr::Context(offset, size) => {
                // Those of the context's borders are addresses.
                let _ = dialect;
                self.context(i64::from(*offset), *size)
            }
            Expr::Packet(address, size, signed) => {
                let address = self.expression(address, state, site);
                let bytes = size.bytes();
                let by = self.gates.number(BASE.wrapping_neg());
                let at = self.gates.add(address, by);
                let loaded = self.packet(state, at, bytes);
                // Zero where they are not all there.
                let n = self.gates.number(u64::from(bytes));
                let (end, length) = (self.gates.add(at, n), self.gates.length());
                let (short, zero) = (self.gates.less(length, end), self.gates.number(0));
                let loaded = match signed {
                    true => self.gates.extended(8 * bytes, loaded),
                    false => loaded,
                };
                self.gates.select(short, zero, loaded)
            }
            Expr::Constant(address, size, signed) => {
                let Expr::Address(object, offset) = **address else {
                    return self.obstacle("a constant at a computed place");
                };
                let loaded = self.global(object, u64::from(offset), size.bytes());
                match signed {
                    true => self.gates.extended(8 * size.bytes(), loaded),
                    false => loaded,
                }
            }
            Expr::Byte(of, index) => {
                let of = self.expression(of, state, site);
                self.gates.bits(of, 8 * u32::from(*index), 8)
            }
            Expr::Bytes(all) => {
                let mut parts = Vec::new();
                for e in all {
                    let byte = self.expression(e, state, site);
                    parts.push((self.gates.bits(byte, 0, 8), 8));
                }
                self.gates.concat(parts)
            }
            Expr::Alu(op, width, a, b) => {
                let (a, b) = (
                    self.expression(a, state, site),
                    self.expression(b, state, site),
                );
                self.arithmetic(*op, *width, a, b)
            }
            Expr::Neg(width, e) => {
                let (e, zero) = (self.expression(e, state, site), self.gates.number(0));
                let e = self.narrow(*width, e);
                let out = self.gates.sub(zero, e);
                self.narrow(*width, out)
            }
            Expr::Extend(width, size, e) => {
                let e = self.expression(e, state, site);
                let out = self.gates.extended(8 * size.bytes(), e);
                self.narrow(*width, out)
            }
            Expr::Order(order, bits, e) => {
                let e = self.expression(e, state, site);
                self.order(*order, *bits, e)
            }
            Expr::Compare(condition, width, a, b) => {
                let (a, b) = (
                    self.expression(a, state, site),
                    self.expression(b, state, site),
                );
                self.compare(*condition, *width, a, b)
            }
            Expr::Select(c, a, b) => {
                let c = self.expression(c, state, site);
                let (a, b) = (
                    self.expression(a, state, site),
                    self.expression(b, state, site),
                );
                let none = self.gates.not(c);
                self.gates.select(none, b, a)
            }
            Expr::Index(e, list) => {
                let e = self.expression(e, state, site);
                let last = list.len().saturating_sub(1);
                let mut out = self.gates.number(last as u64);
                for (place, n) in list.iter().enumerate().take(last).rev() {
                    let (n, place) = (self.gates.number(*n), self.gates.number(place as u64));
                    let same = self.gates.equal(e, n);
                    out = self.gates.select(same, place, out);
                }
                out
            }
            Expr::Pick(e, list) => {
                let e = self.expression(e, state, site);
                let last = list.len().saturating_sub(1);
                let mut out = self.gates.number(list.last().copied().unwrap_or(0));
                for (place, n) in list.iter().enumerate().take(last).rev() {
                    let (n, place) = (self.gates.number(*n), self.gates.number(place as u64));
                    let same = self.gates.equal(e, place);
                    out = self.gates.select(same, n, out);
                }
                out
            }
            Expr::Address(..) => self.obstacle("an address in a row"),
            Expr::Field(_) => self.obstacle("a field in a field"),
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

fn of_kept(kept: &BTreeMap<StepId, Wire>, step: StepId, zero: Wire) -> Wire {
    kept.get(&step).copied().unwrap_or(zero)
}
