//! Ports that a program may send packets to, by the port at which they came in.
//!
//! Functions between two ports mostly send a packet on or drop it. Who runs several of them over a burst wants to know which
//! may send it back (crates/dataplane/src/worker/order.rs), without the proof, since a module from the cache comes without
//! one.
//!
//! A forward dataflow analysis (Kildall, 1973) of the packet handler, with the ingress port as a constant: registers and stack
//! slots hold small sets of numbers, addresses of the own stack, or anything; branches whose outcome the sets decide are
//! followed one way. Joins take unions, so that it ends; sets of more than `MOST` numbers are anything. Local functions
//! are not entered: they give anything. It relies on the program being safe: no address of the stack is read back from
//! another memory than the stack.

use std::collections::BTreeMap;

use millrace_object::arithmetic::{arithmetic, compare};
use millrace_object::helper::{self, Arg};
use millrace_object::insn::{
    AluOp, AtomicOp, Condition, Imm64, Insn, Operand, REGISTERS, Reg, Size, Width,
};
use millrace_object::program::{Dialect, ObjectId, Program, Role};

/// The most numbers that a set holds: verdicts of a function with a dozen drop reasons often meet before they are returned.
const MOST: usize = 16;
/// The most instructions that are followed, some milliseconds; where a program needs more, packets of the ports that are left
/// may go anywhere.
const STEPS: usize = 1 << 17;

/// By ingress port, for as many ports, where packet entry `entry` (among those that take packets) may send a packet: a bit
/// each, port 0 the lowest. None: anywhere. Flooding sends to all ports but the ingress port.
#[must_use]
pub fn egress(program: &Program, entry: usize, ports: u32) -> Vec<Option<u64>> {
    let mut entries = program.entries.iter();
    let takes = |role| matches!(role, Role::Xdp | Role::OnPacket);
    let entry = entries.by_ref().filter(|e| takes(e.role)).nth(entry);
    let function = entry.and_then(|e| program.functions.get(e.function.0));
    // What another program makes of the packet is not known here.
    let mut all = program.functions.iter().flat_map(|f| &f.insns);
    let leaves =
        |insn: &Insn| matches!(insn, Insn::Call { helper } if *helper == helper::TAIL_CALL.number);
    let function = function.filter(|_| !all.any(leaves));
    // Packets begin with no target (fastpath/context.h).
    let redirects = [helper::REDIRECT.number, helper::REDIRECT_MAP.number];
    let names = |insn: &Insn| matches!(insn, Insn::Call { helper } if redirects.contains(helper));
    let others = program.functions.iter();
    let others = others.filter(|f| function.is_none_or(|own| !std::ptr::eq(*f, own)));
    let elsewhere = others.flat_map(|f| &f.insns).any(names);
    let mut left = STEPS;
    let mut of = |port| {
        let insns = function?.insns.as_slice();
        let mut analysis = Analysis {
            program,
            insns,
            port,
            at: vec![None; insns.len()],
            begins: Value::number(0),
            elsewhere,
            left,
            ports: 0,
        };
        let found = analysis.run();
        left = analysis.left;
        found
    };
    (0..ports).map(&mut of).collect()
}

/// What a register or a stack slot holds.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    /// one of these numbers, ascending
    Numbers(Vec<u64>),
    /// an address in the function's stack, bytes from `r10`
    Stack(i64),
    /// the context
    Context,
    /// an address in a section of constants
    Constant(ObjectId, i64),
    /// anything but an address in the stack
    Other,
    /// anything
    Any,
}

impl Value {
    fn number(n: u64) -> Self {
        Self::Numbers(vec![n])
    }

    fn numbers(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        all.dedup();
        match all.len() {
            1..=MOST => Self::Numbers(all),
            _ => Self::Other,
        }
    }

    /// Whether it may be an address in the stack.
    fn may_be_stack(&self) -> bool {
        matches!(self, Self::Stack(_) | Self::Any)
    }

    fn join(&self, other: &Self) -> Self {
        match (self, other) {
            _ if self == other => self.clone(),
            (Self::Numbers(a), Self::Numbers(b)) => Self::numbers([a.as_slice(), b].concat()),
            _ if self.may_be_stack() || other.may_be_stack() => Self::Any,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
struct State {
    registers: Vec<Value>,
    /// what was stored at an offset from `r10`: bytes, and the value
    slots: BTreeMap<i64, (u32, Value)>,
    /// the interface that `XDP_REDIRECT` leads to
    target: Value,
}

impl State {
    fn get(&self, register: Reg) -> Value {
        let value = self.registers.get(usize::from(register.0));
        value.cloned().unwrap_or(Value::Any)
    }

    fn set(&mut self, register: Reg, value: Value) {
        if let Some(place) = self.registers.get_mut(usize::from(register.0)) {
            *place = value;
        }
    }

    fn operand(&self, operand: Operand) -> Value {
        match operand {
            Operand::Reg(register) => self.get(register),
            Operand::Imm(n) => Value::number(n as u64),
        }
    }

    /// Forgets what lies in these bytes of the stack.
    fn forget(&mut self, from: i64, to: i64) {
        self.slots
            .retain(|at, (bytes, _)| *at >= to || *at + i64::from(*bytes) <= from);
    }

    /// Somebody may write to memory from this address on, of unknown length.
    fn written(&mut self, address: &Value) {
        match address {
            Value::Stack(at) => self.forget(*at, 0),
            Value::Any => self.slots.clear(),
            _ => {}
        }
    }

    fn join(&self, other: &Self) -> Self {
        let registers = self.registers.iter().zip(&other.registers);
        let slots = self.slots.iter().filter_map(|(at, (bytes, value))| {
            let (others, other) = other.slots.get(at)?;
            (bytes == others).then(|| (*at, (*bytes, value.join(other))))
        });
        Self {
            registers: registers.map(|(a, b)| a.join(b)).collect(),
            slots: slots.collect(),
            target: self.target.join(&other.target),
        }
    }
}

struct Analysis<'a> {
    program: &'a Program,
    insns: &'a [Insn],
    port: u32,
    /// the state before the instructions that control flow meets at
    at: Vec<Option<State>>,
    /// the interface that `XDP_REDIRECT` leads to before one is named
    begins: Value,
    /// other functions than the packet handler name targets
    elsewhere: bool,
    /// instructions that may still be followed
    left: usize,
    /// ports that were found
    ports: u64,
}

/// Where an instruction leads.
enum Next {
    On,
    To(usize),
    Either(usize),
    End,
}

impl Analysis<'_> {
    fn run(&mut self) -> Option<u64> {
        let mut meets = vec![false; self.insns.len()];
        for (at, insn) in self.insns.iter().enumerate() {
            let targets = match *insn {
                Insn::Jump { target } => [Some(target), None],
                Insn::Branch { target, .. } => [Some(target), Some(at + 1)],
                _ => [None, None],
            };
            for target in targets.into_iter().flatten() {
                *meets.get_mut(target)? = true;
            }
        }
        let mut registers = vec![Value::Other; REGISTERS];
        *registers.get_mut(1)? = Value::Context;
        *registers.get_mut(10)? = Value::Stack(0);
        let begin = State {
            registers,
            slots: BTreeMap::new(),
            target: self.begins.clone(),
        };
        let mut todo = vec![(0, begin)];
        while let Some((mut at, mut state)) = todo.pop() {
            loop {
                if *meets.get(at)? {
                    let before = self.at.get_mut(at)?;
                    let joined = match before {
                        Some(before) => before.join(&state),
                        None => state,
                    };
                    if before.as_ref() == Some(&joined) {
                        break;
                    }
                    *before = Some(joined.clone());
                    state = joined;
                }
                self.left = self.left.checked_sub(1)?;
                match self.step(at, &mut state)? {
                    Next::On => at += 1,
                    Next::To(target) => at = target,
                    Next::Either(target) => {
                        todo.push((target, state.clone()));
                        at += 1;
                    }
                    Next::End => break,
                }
            }
        }
        Some(self.ports)
    }

    /// Follows an instruction; none where nothing can be said any more.
    fn step(&mut self, at: usize, state: &mut State) -> Option<Next> {
        match *self.insns.get(at)? {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let value = alu(op, width, &state.get(dst), &state.operand(src));
                state.set(dst, value);
            }
            Insn::Neg { width, dst } => {
                let value = alu(AluOp::Sub, width, &Value::number(0), &state.get(dst));
                state.set(dst, value);
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let value = each(&state.get(src), |n| narrow(width, extend(from, n)));
                state.set(dst, value);
            }
            Insn::ByteOrder { dst, .. } => {
                let value = match state.get(dst).may_be_stack() {
                    true => Value::Any,
                    false => Value::Other,
                };
                state.set(dst, value);
            }
            Insn::LoadImm { dst, value } => {
                let value = match value {
                    Imm64::Number(n) => Value::number(n),
                    Imm64::ObjectValue { object, offset } => {
                        Value::Constant(object, i64::from(offset))
                    }
                    Imm64::Object(_) | Imm64::Function(_) => Value::Other,
                };
                state.set(dst, value);
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                let mut value = self.load(state, size, &state.get(base), i64::from(offset));
                if signed {
                    value = each(&value, |n| extend(size, n));
                }
                state.set(dst, value);
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => match state.get(base) {
                Value::Stack(from) => {
                    let from = from + i64::from(offset);
                    state.forget(from, from + i64::from(size.bytes()));
                    let mut value = state.operand(src);
                    if size != Size::B8 {
                        value = each(&value, |n| cut(size, n));
                    }
                    state.slots.insert(from, (size.bytes(), value));
                }
                address => state.written(&address),
            },
            Insn::Atomic {
                op,
                fetch,
                base,
                src,
                ..
            } => {
                let address = state.get(base);
                state.written(&address);
                let old = match address.may_be_stack() {
                    true => Value::Any,
                    false => Value::Other,
                };
                if op == AtomicOp::CompareExchange {
                    state.set(Reg(0), old);
                } else if fetch {
                    state.set(src, old);
                }
            }
            Insn::Jump { target } => return Some(Next::To(target)),
            Insn::Branch {
                condition,
                width,
                left,
                right,
                target,
            } => return Some(branch(state, (condition, width), left, right, target)),
            Insn::Call { helper } => self.call(state, helper)?,
            Insn::CallLocal { .. } => {
                let reaches = (1..=5).any(|r| state.get(Reg(r)).may_be_stack());
                if reaches {
                    state.slots.clear();
                }
                let result = if reaches { Value::Any } else { Value::Other };
                if self.elsewhere {
                    state.target = Value::Other;
                }
                state.set(Reg(0), result);
            }
            Insn::CallRegister { .. } | Insn::LegacyPacketLoad => return None,
            Insn::Exit => {
                self.end(state)?;
                return Some(Next::End);
            }
        }
        Some(Next::On)
    }

    fn load(&self, state: &State, size: Size, base: &Value, offset: i64) -> Value {
        match base {
            Value::Stack(from) => match state.slots.get(&(from + offset)) {
                Some((bytes, value)) if *bytes == size.bytes() => value.clone(),
                _ => Value::Any,
            },
            Value::Context if (offset, size) == (12, Size::B4) => {
                // Interface indexes begin at 1.
                let first = u64::from(self.program.dialect == Dialect::Xdp);
                Value::number(u64::from(self.port) + first)
            }
            // Parameters may be set while it runs, and are none.
            Value::Constant(object, from) => {
                let from = u32::try_from(from + offset).ok();
                let constant = |from| self.program.constant(*object, from, size.bytes());
                from.and_then(constant).map_or(Value::Other, |bytes| {
                    let whole = bytes.iter().rev();
                    Value::number(whole.fold(0, |n, byte| n << 8 | u64::from(*byte)))
                })
            }
            Value::Any => Value::Any,
            Value::Context | Value::Numbers(_) | Value::Other => Value::Other,
        }
    }

    fn call(&mut self, state: &mut State, number: u32) -> Option<()> {
        let helper = helper::by_number(number)?;
        if helper == &helper::REDIRECT {
            let (to, flags) = (state.get(Reg(1)), state.get(Reg(2)));
            let to = each(&to, |n| n & 0xffff_ffff);
            let plain = flags == Value::number(0);
            state.target = if plain { to } else { state.target.join(&to) };
            let answers = if plain {
                vec![REDIRECT]
            } else {
                vec![0, REDIRECT]
            };
            state.set(Reg(0), Value::numbers(answers));
            return Some(());
        }
        for (argument, register) in helper.args.iter().zip(1..) {
            match argument {
                Arg::Context
                | Arg::Object
                | Arg::Callback
                | Arg::Function
                | Arg::Key
                | Arg::Value
                | Arg::Scalar
                | Arg::Read { .. }
                | Arg::In(_)
                | Arg::Text
                | Arg::Bytes { .. } => {}
                Arg::Timer
                | Arg::Write { .. }
                | Arg::Update
                | Arg::Record
                | Arg::Out(_)
                | Arg::InOut(_)
                | Arg::KeyOut
                | Arg::Iterator
                | Arg::ValueOut => {
                    let address = state.get(Reg(register));
                    state.written(&address);
                }
                // A function that is called back may write before it, too.
                Arg::Any if state.get(Reg(register)).may_be_stack() => state.slots.clear(),
                Arg::Any => {}
            }
        }
        let calls = helper.function_argument().is_some();
        if helper.effects.other || calls && self.elsewhere {
            state.target = Value::Other;
        }
        state.set(Reg(0), Value::Other);
        Some(())
    }

    /// Notes where a packet goes; none where that may be anywhere.
    fn end(&mut self, state: &State) -> Option<()> {
        let Value::Numbers(verdicts) = state.get(Reg(0)) else {
            return None;
        };
        let bit = |port: u64| 1_u64.checked_shl(u32::try_from(port).ok()?);
        let own = bit(u64::from(self.port))?;
        for verdict in verdicts {
            let verdict = verdict & 0xffff_ffff;
            match (self.program.dialect, verdict >> 24, verdict) {
                (Dialect::Handlers, FORWARD, _) => self.ports |= bit(verdict & 0xff_ffff)?,
                (Dialect::Handlers, FLOOD, _) => self.ports |= !own,
                (Dialect::Xdp, _, TX) => self.ports |= own,
                (Dialect::Xdp, _, REDIRECT) => {
                    let Value::Numbers(interfaces) = &state.target else {
                        return None;
                    };
                    for interface in interfaces.iter().filter(|i| **i > 0) {
                        self.ports |= bit(interface - 1)?;
                    }
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// Kinds of verdict of handlers (docs/dialect.md).
const FORWARD: u64 = 1;
const FLOOD: u64 = 2;
/// `XDP_TX`, `XDP_REDIRECT`
const TX: u64 = 3;
const REDIRECT: u64 = 4;

fn each(value: &Value, of: impl Fn(u64) -> u64) -> Value {
    match value {
        Value::Numbers(all) => Value::numbers(all.iter().map(|n| of(*n)).collect()),
        value if value.may_be_stack() => Value::Any,
        _ => Value::Other,
    }
}

/// The lowest bytes of a number.
fn cut(size: Size, n: u64) -> u64 {
    match size {
        Size::B1 => u64::from(n as u8),
        Size::B2 => u64::from(n as u16),
        Size::B4 => u64::from(n as u32),
        Size::B8 => n,
    }
}

/// The same, with their sign.
fn extend(size: Size, n: u64) -> u64 {
    match size {
        Size::B1 => n as i8 as u64,
        Size::B2 => n as i16 as u64,
        Size::B4 => n as i32 as u64,
        Size::B8 => n,
    }
}

fn narrow(width: Width, n: u64) -> u64 {
    match width {
        Width::W32 => u64::from(n as u32),
        Width::W64 => n,
    }
}

fn alu(op: AluOp, width: Width, left: &Value, right: &Value) -> Value {
    match (op, width, left, right) {
        (AluOp::Mov, Width::W64, _, value) => return value.clone(),
        (AluOp::Mov, Width::W32, _, value) => return each(value, |n| narrow(width, n)),
        (AluOp::Add, Width::W64, Value::Stack(at), Value::Numbers(n))
        | (AluOp::Add, Width::W64, Value::Numbers(n), Value::Stack(at)) => {
            if let [n] = n.as_slice() {
                return Value::Stack(at.wrapping_add(*n as i64));
            }
        }
        (AluOp::Add, Width::W64, Value::Constant(object, at), Value::Numbers(n)) => {
            if let [n] = n.as_slice() {
                return Value::Constant(*object, at.wrapping_add(*n as i64));
            }
        }
        (_, _, Value::Numbers(left), Value::Numbers(right)) => {
            let pairs = left.iter().flat_map(|l| right.iter().map(|r| (*l, *r)));
            let all = pairs.map(|(l, r)| arithmetic(op, width, l, r));
            return Value::numbers(all.collect());
        }
        _ => {}
    }
    match left.may_be_stack() || right.may_be_stack() {
        true => Value::Any,
        false => Value::Other,
    }
}

/// Goes one way where the sets decide it, and both ways otherwise.
fn branch(
    state: &mut State,
    (condition, width): (Condition, Width),
    left: Reg,
    right: Operand,
    target: usize,
) -> Next {
    let (Value::Numbers(a), Value::Numbers(b)) = (state.get(left), state.operand(right)) else {
        return Next::Either(target);
    };
    let mut pairs = a.iter().flat_map(|a| b.iter().map(|b| (*a, *b)));
    let holds = |(a, b)| compare(condition, width, a, b);
    let first = pairs.next().map(holds);
    match first {
        Some(first) if pairs.all(|pair| holds(pair) == first) => match first {
            true => Next::To(target),
            false => Next::On,
        },
        _ => Next::Either(target),
    }
}
