//! The path that one packet takes through a program, or through its prefetch pass.
//!
//! Nothing depends on it but speed: the emitted code looks at each branch, and at each address that is not the packet's first byte and a
//! constant, before it goes on as this packet did. So a value here is a number in this one execution, with what it has in common
//! with all executions that take the same path.

mod packets;

use std::collections::BTreeMap;

use millrace_check::alters::changes;
use millrace_check::domain::{Scalar, alu};
use millrace_check::facts::{Access, ArgFact, FrameId, Kind, Op, Step, StepId};
use millrace_object::arithmetic::{arithmetic, compare};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Operand, REGISTERS, Reg, Size, Width};

use super::demand::Demand;
use super::forms;
use super::slice::{Role, Slice};

pub use packets::all as packets;

/// A packet and the port at which it arrives.
pub struct Packet {
    port: u32,
    bytes: Vec<u8>,
}

/// Where the packet's first byte lies here.
const DATA: u64 = 0x1000_0000;
/// Most steps of a path.
const MOST_STEPS: usize = 1500;
/// Most branches of a path of which both sides are looked at.
const MOST_LOOKS: usize = 32;
/// Most paths of one packet: those apart where the value of a setting decides.
const MOST_PATHS: usize = 16;

/// What a number has in common with the same one in other executions of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Same {
    /// it is this number in all of them
    Number,
    /// it is so far behind the packet's first byte in all of them
    Distance,
    /// nothing
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Value {
    bits: u64,
    same: Same,
}

/// A value of which not even this packet's is known.
type Maybe = Option<Value>;

/// A step of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// the step
    pub id: StepId,
    /// of a branch of which both outcomes can happen: whether its condition holds
    pub holds: Option<bool>,
    /// of a load from the packet that is emitted: at which byte, counted from the packet's first
    pub at: Option<u64>,
    /// whether it has to be looked at that it is there
    pub guarded: bool,
}

/// A path from the beginning to a keyed operation, or to the program's end, which is its last step.
pub type Path = Vec<Taken>;

/// What is followed.
#[derive(Clone, Copy)]
struct Followed<'w, 'a> {
    slice: &'w Slice<'a>,
    /// of a prefetch pass: what of it is needed; none: a program to its end
    demand: Option<&'w Demand>,
}

/// One execution.
#[derive(Clone)]
struct Machine {
    registers: BTreeMap<(FrameId, u8), Maybe>,
    /// by byte of the stack: the value of which it is a byte, which one, and how many that has
    stack: BTreeMap<(FrameId, i32), (Value, u8, u8)>,
    /// bytes of the packet that were written, by their place; none where it is not known as what
    written: BTreeMap<u64, Option<u8>>,
    path: Path,
    at: StepId,
    /// where something else decides, a condition is not fulfilled
    plain: bool,
}

/// The paths of a packet through a prefetch pass to keyed operations.
pub fn paths(slice: &Slice, demand: &Demand, packet: &Packet) -> Vec<Path> {
    let followed = Followed {
        slice,
        demand: Some(demand),
    };
    let mut found = Vec::new();
    let mut open = vec![Machine::new()];
    while let Some(mut machine) = open.pop() {
        loop {
            if machine.path.len() > MOST_STEPS || open.len() + found.len() > MOST_PATHS {
                return Vec::new();
            }
            match machine.step(followed, packet) {
                Next::On => {}
                Next::Fork(other) => open.push(*other),
                Next::Found => {
                    found.push(machine.path);
                    break;
                }
                Next::Lost => break,
            }
        }
    }
    found
}

/// The path of a packet through a whole program where what it looks up is there; none where the packet is moved, or changed at a place that is not
/// known. Where something else than the packet decides it goes where most elements are ahead, and most steps.
pub fn whole(slice: &Slice, packet: &Packet) -> Option<Path> {
    let followed = Followed {
        slice,
        demand: None,
    };
    let mut machine = Machine::new();
    for _ in 0..MOST_LOOKS {
        let Some(other) = machine.run(followed, packet) else {
            break;
        };
        if other.far(followed, packet) > machine.far(followed, packet) {
            machine = *other;
        }
    }
    machine.plain = true;
    machine.run(followed, packet);
    machine.ended(slice).then_some(machine.path)
}

/// What comes behind a step.
enum Next {
    On,
    /// both outcomes of a branch may be
    Fork(Box<Machine>),
    /// a keyed operation, or the program's end
    Found,
    /// none
    Lost,
}

impl Machine {
    fn new() -> Self {
        Self {
            registers: BTreeMap::new(),
            stack: BTreeMap::new(),
            written: BTreeMap::new(),
            path: Vec::new(),
            at: StepId(0),
            plain: false,
        }
    }

    /// Goes on to a branch that something else decides, and there with its condition not fulfilled; gives the other way. None at the end.
    fn run(&mut self, followed: Followed, packet: &Packet) -> Option<Box<Machine>> {
        while self.path.len() < MOST_STEPS {
            match self.step(followed, packet) {
                Next::On => {}
                Next::Fork(other) => return Some(other),
                Next::Found | Next::Lost => break,
            }
        }
        None
    }

    /// How many elements it comes to, whether it comes to the program's end, and by how many steps.
    fn far(&self, followed: Followed, packet: &Packet) -> (usize, bool, usize) {
        let mut ahead = Self {
            plain: true,
            ..self.clone()
        };
        ahead.run(followed, packet);
        let steps = ahead.path.iter().map(|t| followed.slice.step(t.id));
        let elements = steps.filter(|s| s.frame == FrameId(0) && matches!(s.op, Op::Enter { .. }));
        (
            elements.count(),
            ahead.ended(followed.slice),
            ahead.path.len(),
        )
    }

    fn ended(&self, slice: &Slice) -> bool {
        let last = self.path.last();
        last.is_some_and(|taken| slice.step(taken.id).op == Op::Exit)
    }

    fn step(&mut self, followed: Followed, packet: &Packet) -> Next {
        let slice = followed.slice;
        let whole = followed.demand.is_none();
        let (id, step) = (self.at, slice.step(self.at));
        let taken = |holds| Taken {
            id,
            holds,
            at: None,
            guarded: false,
        };
        match slice.role(id) {
            Role::Run => {}
            Role::Site(_) => {
                self.path.push(taken(None));
                return Next::Found;
            }
            _ => return Next::Lost,
        }
        if whole && step.op == Op::Exit {
            self.path.push(taken(None));
            return Next::Found;
        }
        if whole && changes(step) && !self.writes(step) {
            return Next::Lost;
        }
        let successors = slice.successors(id);
        let (Op::Branch { insn, .. }, [not, holds]) = (step.op, successors.as_slice()) else {
            let [next] = successors.as_slice() else {
                return Next::Lost;
            };
            self.at = *next;
            let mut taken = taken(None);
            match step.op {
                Op::Plain(insn) => self.plain(followed, step, &insn, packet, &mut taken),
                Op::Enter { frame, .. } => self.enter(step.frame, frame),
                Op::Leave { .. } => {
                    let answer = self.register(step.frame, Reg(0));
                    if let Some(caller) = slice.flow.frames.get(step.frame.0).and_then(|f| f.caller)
                    {
                        (0..=5).for_each(|reg| self.set(caller, Reg(reg), None));
                        self.set(caller, Reg(0), answer);
                    }
                }
                Op::Jump { .. } | Op::Branch { .. } | Op::Exit => {}
            }
            self.path.push(taken);
            return Next::On;
        };
        let outcome = self.outcome(step, &insn);
        match outcome.or_else(|| found(step, &insn).filter(|_| whole)) {
            Some(outcome) => {
                self.path.push(taken(Some(outcome)));
                self.at = if outcome { *holds } else { *not };
                Next::On
            }
            None if self.plain => {
                self.path.push(taken(Some(false)));
                self.at = *not;
                Next::On
            }
            None => {
                let mut other = self.clone();
                other.path.push(taken(Some(true)));
                other.at = *holds;
                self.path.push(taken(Some(false)));
                self.at = *not;
                Next::Fork(Box::new(other))
            }
        }
    }

    fn enter(&mut self, caller: FrameId, frame: FrameId) {
        self.stack.retain(|(of, _), _| *of != frame);
        for reg in (0..REGISTERS as u8).map(Reg) {
            let value = match reg.0 {
                1..=5 => self.register(caller, reg),
                _ => None,
            };
            self.set(frame, reg, value);
        }
    }

    fn register(&self, frame: FrameId, reg: Reg) -> Maybe {
        self.registers.get(&(frame, reg.0)).copied().flatten()
    }

    fn set(&mut self, frame: FrameId, reg: Reg, value: Maybe) {
        self.registers.insert((frame, reg.0), value);
    }

    fn operand(&self, frame: FrameId, operand: Operand) -> Maybe {
        match operand {
            Operand::Reg(reg) => self.register(frame, reg),
            Operand::Imm(n) => Some(constant(n as u64)),
        }
    }

    fn outcome(&self, step: &Step, insn: &Insn) -> Option<bool> {
        let Insn::Branch {
            condition,
            width,
            left,
            right,
            ..
        } = *insn
        else {
            return None;
        };
        let left = self.register(step.frame, left)?.bits;
        let right = self.operand(step.frame, right)?.bits;
        Some(compare(condition, forms::width(step, width), left, right))
    }

    fn plain(
        &mut self,
        followed: Followed,
        step: &Step,
        insn: &Insn,
        packet: &Packet,
        taken: &mut Taken,
    ) {
        let frame = step.frame;
        let (dst, value) = match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let left = match op {
                    AluOp::Mov => Some(constant(0)),
                    _ => self.register(frame, dst),
                };
                let both = left.zip(self.operand(frame, src));
                let width = forms::width(step, width);
                (dst, both.map(|(a, b)| operation(op, width, a, b)))
            }
            Insn::Neg { width, dst } => {
                let of = |s: &Scalar| alu::neg(width, s);
                (dst, self.register(frame, dst).and_then(|v| unary(v, of)))
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let of = |s: &Scalar| alu::sign_extend(width, from, s);
                (dst, self.register(frame, src).and_then(|v| unary(v, of)))
            }
            Insn::ByteOrder { order, bits, dst } => {
                let of = |s: &Scalar| alu::byte_order(order, bits, s);
                (dst, self.register(frame, dst).and_then(|v| unary(v, of)))
            }
            Insn::LoadImm {
                dst,
                value: Imm64::Number(n),
            } => (dst, Some(constant(n))),
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                let loaded = match step.access {
                    Some(Access::Context { offset }) => packet.field(offset, size),
                    Some(Access::Packet) => {
                        self.looked_at(followed, step, (dst, base, offset), taken);
                        let at = self.register(frame, base).map(|v| v.bits);
                        let at = at.map(|b| b.wrapping_add(i64::from(offset) as u64));
                        at.and_then(|at| self.number(packet, at.wrapping_sub(DATA), size))
                    }
                    Some(Access::Stack { frame, from, to }) if to - from == size.bytes() as i32 => {
                        self.slot(frame, from, size, step.whole)
                    }
                    _ => None,
                };
                let width = Width::W64;
                let of = |s: &Scalar| alu::sign_extend(width, size, s);
                (
                    dst,
                    match signed {
                        true => loaded.and_then(|v| unary(v, of)),
                        false => loaded,
                    },
                )
            }
            Insn::Store { size, src, .. } => {
                let value = self.operand(frame, src);
                return match step.access {
                    Some(Access::Packet) => self.write(step, insn, value),
                    _ => self.store(step, size, value),
                };
            }
            _ => {
                if matches!(insn, Insn::Call { .. } | Insn::Atomic { .. }) {
                    self.overwritten(step, insn);
                    (0..=5).for_each(|reg| self.set(frame, Reg(reg), None));
                }
                if let Some(reg) = millrace_check::facts::written(insn) {
                    self.set(frame, reg, None);
                }
                return;
            }
        };
        self.set(frame, dst, value);
    }

    /// Notes where a load from the packet reads; from then on its base is as far from the packet's first byte in all executions of the path.
    fn looked_at(
        &mut self,
        followed: Followed,
        step: &Step,
        (dst, base, offset): (Reg, Reg, i16),
        taken: &mut Taken,
    ) {
        let Some(demand) = followed.demand else {
            return;
        };
        let demanded = demand.after(followed.slice, taken.id, dst).any();
        if !demanded || step.after != Kind::Scalar {
            return;
        }
        let Some(value) = self.register(step.frame, base) else {
            return;
        };
        let place = value.bits.wrapping_add(i64::from(offset) as u64);
        taken.at = Some(place.wrapping_sub(DATA));
        taken.guarded = value.same != Same::Distance;
        if taken.guarded {
            let same = Same::Distance;
            self.set(step.frame, base, Some(Value { same, ..value }));
        }
    }

    /// Whether a step that changes the packet writes a few of its bytes at a place that is known.
    fn writes(&self, step: &Step) -> bool {
        let Op::Plain(Insn::Store { base, .. }) = step.op else {
            return false;
        };
        step.access == Some(Access::Packet) && self.register(step.frame, base).is_some()
    }

    /// A store to the packet.
    fn write(&mut self, step: &Step, insn: &Insn, value: Maybe) {
        let Insn::Store {
            size, base, offset, ..
        } = *insn
        else {
            return;
        };
        let Some(base) = self.register(step.frame, base) else {
            return;
        };
        let at = base.bits.wrapping_add(i64::from(offset) as u64);
        for byte in 0..size.bytes() {
            let place = at.wrapping_sub(DATA).wrapping_add(u64::from(byte));
            let written = value.map(|v| (v.bits >> (8 * byte)) as u8);
            self.written.insert(place, written);
        }
    }

    /// Bytes of the packet as a number.
    fn number(&self, packet: &Packet, at: u64, size: Size) -> Maybe {
        let mut bits = 0;
        for byte in 0..size.bytes() {
            let place = at.checked_add(u64::from(byte))?;
            let there = usize::try_from(place)
                .ok()
                .and_then(|p| packet.bytes.get(p));
            let written = self.written.get(&place).copied();
            bits |= u64::from(written.unwrap_or(there.copied())?) << (8 * byte);
        }
        let same = Same::Nothing;
        Some(Value { bits, same })
    }

    fn slot(&self, frame: FrameId, from: i32, size: Size, whole: bool) -> Maybe {
        let count = size.bytes() as i32;
        let bytes: Vec<(Value, u8, u8)> = (0..count)
            .map(|n| self.stack.get(&(frame, from + n)).copied())
            .collect::<Option<_>>()?;
        let first = bytes.first()?;
        let as_stored = (0..)
            .zip(&bytes)
            .all(|(n, b)| *b == (first.0, n, size.bytes() as u8));
        if as_stored && (size == Size::B8 || whole) {
            return Some(first.0);
        }
        let mut bits = 0;
        let mut same = Same::Number;
        for (n, (value, byte, _)) in bytes.iter().enumerate() {
            bits |= (value.bits >> (8 * byte) & 0xff) << (8 * n);
            if value.same != Same::Number {
                same = Same::Nothing;
            }
        }
        Some(Value { bits, same })
    }

    /// What a call or an atomic instruction may write to the stack is not known any more.
    fn overwritten(&mut self, step: &Step, insn: &Insn) {
        let helper = match *insn {
            Insn::Call { helper } => helper::by_number(helper),
            _ => None,
        };
        let written: Vec<Access> = match helper {
            Some(helper) => {
                let all = helper.args.iter().zip(&step.args);
                let written = all.filter(|(arg, _)| arg.writes_memory());
                let memory = written.filter_map(|(_, fact)| match fact {
                    ArgFact::Memory { access, .. } => Some(*access),
                    _ => None,
                });
                memory.collect()
            }
            None => vec![step.access.unwrap_or(Access::Several)],
        };
        for access in written {
            match access {
                Access::Stack { frame, from, to } => {
                    let other = |of: FrameId, at: i32| of != frame || !(from..to).contains(&at);
                    self.stack.retain(|(of, at), _| other(*of, *at));
                }
                Access::Several => self.stack.clear(),
                _ => {}
            }
        }
    }

    fn store(&mut self, step: &Step, size: Size, value: Maybe) {
        let Some(Access::Stack { frame, from, to }) = step.access else {
            return;
        };
        let bytes = size.bytes();
        let exact = to - from == bytes as i32;
        for (n, at) in (from..to).enumerate() {
            match value.filter(|_| exact) {
                Some(value) => self
                    .stack
                    .insert((frame, at), (value, n as u8, bytes as u8)),
                None => self.stack.remove(&(frame, at)),
            };
        }
    }
}

/// Whether a test for null holds, of something that was looked up and is there.
fn found(step: &Step, insn: &Insn) -> Option<bool> {
    let Insn::Branch {
        condition: condition @ (Condition::Eq | Condition::Ne),
        left,
        right: Operand::Imm(0),
        ..
    } = *insn
    else {
        return None;
    };
    let kind = step.before.get(usize::from(left.0))?;
    matches!(kind, Kind::Value(_) | Kind::Record(_) | Kind::Inner(_))
        .then_some(condition == Condition::Ne)
}

fn constant(bits: u64) -> Value {
    Value {
        bits,
        same: Same::Number,
    }
}

fn unary(value: Value, of: impl Fn(&Scalar) -> Scalar) -> Maybe {
    let bits = of(&Scalar::constant(value.bits)).as_constant()?;
    let same = match value.same {
        Same::Number => Same::Number,
        _ => Same::Nothing,
    };
    Some(Value { bits, same })
}

fn operation(op: AluOp, width: Width, a: Value, b: Value) -> Value {
    let bits = arithmetic(op, width, a.bits, b.bits);
    let same = match (op, width, a.same, b.same) {
        (AluOp::Mov, Width::W64, _, same) => same,
        (_, _, Same::Number, Same::Number) => Same::Number,
        (AluOp::Add, Width::W64, Same::Distance, Same::Number)
        | (AluOp::Add, Width::W64, Same::Number, Same::Distance)
        | (AluOp::Sub, Width::W64, Same::Distance, Same::Number) => Same::Distance,
        _ => Same::Nothing,
    };
    Value { bits, same }
}

impl Packet {
    /// A field of the context.
    fn field(&self, offset: u32, size: Size) -> Maybe {
        let (bits, same) = match (offset, size) {
            (0, Size::B4) => (DATA, Same::Distance),
            (4, Size::B4) => (DATA + self.bytes.len() as u64, Same::Nothing),
            (8, Size::B4) => (DATA, Same::Nothing),
            (12, Size::B4) => (u64::from(self.port), Same::Nothing),
            _ => return None,
        };
        Some(Value { bits, same })
    }
}
