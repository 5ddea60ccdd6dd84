//! A slow interpreter that notices every step outside: the measure of what `check` promises.
//!
//! It executes one entry on numbers, after RFC 9669 and the helpers' contracts, and keeps for every
//! byte of memory whether it exists and has been written. Programs that `check` admits must never
//! give a [`Violation`]. It is meant to be obviously right, not fast, and shares no rule with the
//! checker: memory is regions at addresses far apart, and a pointer is just a number.

use std::collections::HashMap;

use millrace_object::helper::{self, Arg, Helper, Return};
use millrace_object::insn::{
    AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Width,
};
use millrace_object::program::{FunctionId, ObjectId, Program, Role};

/// What an admitted program never does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// with this verdict
    Verdict(u64),
    /// not within the steps that were allowed
    OutOfSteps,
}

/// Distance between two regions' addresses; a pointer that strays stays in no region.
const APART: u64 = 1 << 40;
/// Where in its distance a region begins.
const INSET: u64 = 1 << 32;

struct Memory {
    bytes: Vec<u8>,
    written: Vec<bool>,
    writable: bool,
}

struct Call {
    regs: [Option<u64>; 11],
    function: usize,
    pc: usize,
    stack: u64,
}

/// One execution under way.
pub struct Machine<'a> {
    program: &'a Program,
    memory: HashMap<u64, Memory>,
    next: u64,
    packet: u64,
    context: u64,
    values: HashMap<ObjectId, u64>,
    records: Vec<u64>,
    draws: u64,
}

fn violation<T>(what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(what.into()))
}

impl<'a> Machine<'a> {
    /// A machine with this packet before it; `seed` decides what helpers return.
    #[must_use]
    pub fn new(program: &'a Program, packet: &[u8], seed: u64) -> Self {
        let mut m = Machine {
            program,
            memory: HashMap::new(),
            next: 1,
            packet: 0,
            context: 0,
            values: HashMap::new(),
            records: Vec::new(),
            draws: seed,
        };
        m.packet = m.map(packet.to_vec(), true, true);
        m.context = m.map(vec![0; 40], true, false);
        for (i, o) in program.objects.iter().enumerate() {
            let bytes = o
                .initial
                .clone()
                .unwrap_or_else(|| vec![0; o.value_bytes as usize]);
            let at = m.map(bytes, true, !o.read_only);
            m.values.insert(ObjectId(i), at);
        }
        m
    }

    fn map(&mut self, bytes: Vec<u8>, written: bool, writable: bool) -> u64 {
        let at = self.next * APART + INSET;
        let key = self.next;
        self.next += 1;
        let written = vec![written; bytes.len()];
        self.memory.insert(
            key,
            Memory {
                bytes,
                written,
                writable,
            },
        );
        at
    }

    /// splitmix64 (Steele, Lea and Flood, 2014)
    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draws;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn place(&mut self, at: u64, len: usize) -> Result<(&mut Memory, usize), Violation> {
        let found = self.memory.get_mut(&(at / APART));
        let offset = (at % APART)
            .checked_sub(INSET)
            .and_then(|o| usize::try_from(o).ok());
        match (found, offset) {
            (Some(m), Some(o)) if o.checked_add(len).is_some_and(|end| end <= m.bytes.len()) => {
                Ok((m, o))
            }
            _ => violation(format!("{len} bytes at {at:#x} are in no region")),
        }
    }

    /// A number, or none if some byte has never been written.
    fn read(&mut self, at: u64, len: usize) -> Result<Option<u64>, Violation> {
        let (m, o) = self.place(at, len)?;
        if !m.written[o..o + len].iter().all(|w| *w) {
            return Ok(None);
        }
        Ok(Some(
            m.bytes[o..o + len]
                .iter()
                .rev()
                .fold(0, |n, &b| n << 8 | u64::from(b)),
        ))
    }

    fn write(&mut self, at: u64, len: usize, value: Option<u64>) -> Result<(), Violation> {
        let (m, o) = self.place(at, len)?;
        if !m.writable {
            return violation(format!("{at:#x} is read-only"));
        }
        for i in 0..len {
            m.bytes[o + i] = value.map_or(0, |v| (v >> (8 * i)) as u8);
            m.written[o + i] = value.is_some();
        }
        Ok(())
    }

    /// Executes an entry.
    ///
    /// # Errors
    /// What the program did that an admitted program never does.
    pub fn run(&mut self, function: FunctionId, role: Role, steps: u64) -> Result<End, Violation> {
        let mut calls = vec![self.call(function.0, [None; 5])];
        if let Some(c) = calls.last_mut() {
            c.regs[1] = Some(self.context);
        }
        for _ in 0..steps {
            let Some(c) = calls.last_mut() else {
                return violation("no active call");
            };
            let insn = self
                .program
                .functions
                .get(c.function)
                .and_then(|f| f.insns.get(c.pc))
                .copied();
            let Some(insn) = insn else {
                return violation("ran off a function");
            };
            c.pc += 1;
            match insn {
                Insn::Exit => {
                    let r0 = c.regs[0];
                    let stack = c.stack;
                    calls.pop();
                    self.memory.remove(&(stack / APART));
                    if let Some(caller) = calls.last_mut() {
                        caller.regs[0] = r0;
                        continue;
                    }
                    if !self.records.is_empty() {
                        return violation("ended with a record held");
                    }
                    return match (r0, role) {
                        (Some(v), _) => Ok(End::Verdict(v)),
                        (None, Role::Xdp | Role::OnPacket) => violation("ended without a verdict"),
                        (None, _) => Ok(End::Verdict(0)),
                    };
                }
                Insn::CallLocal { function } => {
                    let arguments = [c.regs[1], c.regs[2], c.regs[3], c.regs[4], c.regs[5]];
                    c.regs[1..=5].fill(None);
                    let callee = self.call(function.0, arguments);
                    calls.push(callee);
                }
                other => self.step(c, other)?,
            }
        }
        Ok(End::OutOfSteps)
    }

    fn call(&mut self, function: usize, arguments: [Option<u64>; 5]) -> Call {
        let stack = self.map(vec![0; 512], false, true);
        let mut regs = [None; 11];
        regs[1..=5].copy_from_slice(&arguments);
        regs[10] = Some(stack + 512);
        Call {
            regs,
            function,
            pc: 0,
            stack,
        }
    }

    fn step(&mut self, c: &mut Call, insn: Insn) -> Result<(), Violation> {
        let get = |c: &Call, r: Reg| match c.regs.get(usize::from(r.0)).copied().flatten() {
            Some(v) => Ok(v),
            None => violation(format!("r{} is read unset", r.0)),
        };
        let operand = |c: &Call, o: Operand| match o {
            Operand::Reg(r) => get(c, r),
            Operand::Imm(i) => Ok(i as u64),
        };
        match insn {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src,
            } => c.regs[usize::from(dst.0)] = Some(operand(c, src)?),
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let b = operand(c, src)?;
                let a = if op == AluOp::Mov { 0 } else { get(c, dst)? };
                c.regs[usize::from(dst.0)] = Some(arithmetic(op, width, a, b));
            }
            Insn::Neg { width, dst } => {
                c.regs[usize::from(dst.0)] = Some(arithmetic(AluOp::Sub, width, 0, get(c, dst)?))
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let up = 64 - 8 * from.bytes();
                let s = ((get(c, src)? << up) as i64 >> up) as u64;
                c.regs[usize::from(dst.0)] = Some(if width == Width::W32 {
                    u64::from(s as u32)
                } else {
                    s
                });
            }
            Insn::ByteOrder { order, bits, dst } => {
                let low = get(c, dst)? << (64 - bits) >> (64 - bits);
                let swapped = (low << (64 - bits)).swap_bytes();
                c.regs[usize::from(dst.0)] = Some(if order == ByteOrder::ToLittle {
                    low
                } else {
                    swapped
                });
            }
            Insn::LoadImm { dst, value } => {
                c.regs[usize::from(dst.0)] = Some(match value {
                    Imm64::Number(n) => n,
                    Imm64::Object(o) => o.0 as u64,
                    Imm64::ObjectValue { object, offset } => match self.values.get(&object) {
                        Some(v) => v + u64::from(offset),
                        None => return violation("no such object"),
                    },
                    Imm64::Function(_) => return violation("the address of a function"),
                });
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                let at = get(c, base)?.wrapping_add(offset as u64);
                let len = size.bytes() as usize;
                let mut value = if at / APART == self.context / APART {
                    Some(self.field(at, len)?)
                } else {
                    self.read(at, len)?
                };
                if signed {
                    let up = 64 - 8 * size.bytes();
                    value = value.map(|v| ((v << up) as i64 >> up) as u64);
                }
                c.regs[usize::from(dst.0)] = value;
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                let v = operand(c, src)?;
                let at = get(c, base)?.wrapping_add(offset as u64);
                self.write(at, size.bytes() as usize, Some(v))?;
            }
            Insn::Atomic {
                op,
                fetch,
                size,
                base,
                offset,
                src,
            } => {
                let at = get(c, base)?.wrapping_add(offset as u64);
                let len = size.bytes() as usize;
                if at % len as u64 != 0 {
                    return violation("an atomic access that is not aligned");
                }
                let Some(old) = self.read(at, len)? else {
                    return violation("an atomic access to unset memory");
                };
                let v = get(c, src)?;
                let width = if len == 4 { Width::W32 } else { Width::W64 };
                let (new, to) = match op {
                    AtomicOp::Add => (arithmetic(AluOp::Add, width, old, v), src),
                    AtomicOp::Or => (old | v, src),
                    AtomicOp::And => (old & v, src),
                    AtomicOp::Xor => (old ^ v, src),
                    AtomicOp::Exchange => (v, src),
                    AtomicOp::CompareExchange => {
                        let expected = get(c, Reg(0))?;
                        let same = if len == 4 {
                            expected as u32 == old as u32
                        } else {
                            expected == old
                        };
                        (if same { v } else { old }, Reg(0))
                    }
                };
                self.write(at, len, Some(new))?;
                if fetch {
                    c.regs[usize::from(to.0)] = Some(old);
                }
            }
            Insn::Jump { target } => c.pc = target,
            Insn::Branch {
                condition,
                width,
                left,
                right,
                target,
            } => {
                let (a, b) = (get(c, left)?, operand(c, right)?);
                if compare(condition, width, a, b) {
                    c.pc = target;
                }
            }
            Insn::Call { helper } => match helper::by_number(helper) {
                Some(h) => self.help(c, h)?,
                None => return violation("an unknown helper"),
            },
            _ => return violation("an instruction that may not be executed"),
        }
        Ok(())
    }

    /// The context's first two fields are whole addresses here, as they are in a register.
    fn field(&mut self, at: u64, len: usize) -> Result<u64, Violation> {
        let packet = self.packet;
        let bytes = self
            .memory
            .get(&(packet / APART))
            .map_or(0, |m| m.bytes.len() as u64);
        match (at.wrapping_sub(self.context), len) {
            (0 | 8, 4) => Ok(packet),
            (4, 4) => Ok(packet + bytes),
            (12 | 16 | 32, 4) => Ok(u64::from(self.draw() as u32)),
            (24, 8) => Ok(self.draw()),
            (offset, _) => violation(format!("{len} bytes at {offset} of the context")),
        }
    }

    fn help(&mut self, c: &mut Call, h: &Helper) -> Result<(), Violation> {
        let arg = |i: usize| c.regs.get(i + 1).copied().flatten();
        let object = arg(0)
            .filter(|_| h.args.first() == Some(&Arg::Object))
            .and_then(|n| {
                self.program
                    .objects
                    .get(n as usize)
                    .map(|o| (ObjectId(n as usize), o))
            });
        for (i, a) in h.args.iter().enumerate() {
            let Some(v) = arg(i) else {
                return violation(format!("argument {} of {} is unset", i + 1, h.name));
            };
            let size = |i: usize| match arg(i + 1) {
                Some(n) if n <= helper::MAX_BYTES => Ok(n as usize),
                _ => violation("a size that is unset or too large"),
            };
            match *a {
                Arg::Key | Arg::Value => {
                    let Some((_, o)) = object else {
                        return violation("not an object");
                    };
                    let len = if *a == Arg::Key {
                        o.key_bytes
                    } else {
                        o.value_bytes
                    };
                    self.readable(v, len as usize)?;
                }
                Arg::Read { nullable } => {
                    let n = size(i)?;
                    if !(nullable && v == 0 && n == 0) {
                        self.readable(v, n)?;
                    }
                }
                Arg::Write => self.fill(v, size(i)?)?,
                Arg::Out(n) => self.fill(v, n as usize)?,
                Arg::Bytes { zero } => {
                    if v == 0 && !zero {
                        return violation("a size of zero");
                    }
                }
                Arg::Record => {
                    let Some(at) = self.records.iter().position(|&r| r == v) else {
                        return violation("a record that is not held");
                    };
                    self.records.remove(at);
                    self.memory.remove(&(v / APART));
                }
                Arg::Context if v != self.context => return violation("not the context"),
                Arg::Object if object.is_none() => return violation("not an object"),
                _ => {}
            }
        }
        if h.effects.moves_packet {
            self.memory.remove(&(self.packet / APART));
            let len = self.draw() % 100;
            let bytes = (0..len).map(|_| self.draw() as u8).collect();
            self.packet = self.map(bytes, true, true);
        }
        let null = self.draw().is_multiple_of(3);
        let result = match h.returns {
            Return::Scalar { min, max } => {
                let span = (i128::from(max) - i128::from(min) + 1) as u128;
                (i128::from(min) + (u128::from(self.draw()) % span) as i128) as u64
            }
            _ if null => 0,
            Return::ValueOrNull => object
                .and_then(|(id, _)| self.values.get(&id))
                .copied()
                .unwrap_or(0),
            Return::RecordOrNull => {
                let len = arg(1).unwrap_or(0).min(1 << 20) as usize;
                let at = self.map(vec![0; len], true, true);
                self.records.push(at);
                at
            }
        };
        c.regs[1..=5].fill(None);
        c.regs[0] = Some(result);
        Ok(())
    }

    fn readable(&mut self, at: u64, len: usize) -> Result<(), Violation> {
        if len > 0 && self.read(at, len)?.is_none() {
            return violation("a helper reads bytes never written");
        }
        Ok(())
    }

    fn fill(&mut self, at: u64, len: usize) -> Result<(), Violation> {
        for i in 0..len {
            let byte = self.draw();
            self.write(at.wrapping_add(i as u64), 1, Some(byte))?;
        }
        Ok(())
    }
}

fn arithmetic(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    if width == Width::W32 {
        let (x, y) = (a as u32, b as u32);
        let signed = |f: fn(i32, i32) -> i32| f(x as i32, y as i32) as u32;
        return u64::from(match op {
            AluOp::Add => x.wrapping_add(y),
            AluOp::Sub => x.wrapping_sub(y),
            AluOp::Mul => x.wrapping_mul(y),
            AluOp::Div => x.checked_div(y).unwrap_or(0),
            AluOp::Mod => x.checked_rem(y).unwrap_or(x),
            AluOp::SignedDiv if y == 0 => 0,
            AluOp::SignedMod if y == 0 => x,
            AluOp::SignedDiv => signed(i32::wrapping_div),
            AluOp::SignedMod => signed(i32::wrapping_rem),
            AluOp::Or => x | y,
            AluOp::And => x & y,
            AluOp::Xor => x ^ y,
            AluOp::Lsh => x << (y & 31),
            AluOp::Rsh => x >> (y & 31),
            AluOp::Arsh => ((x as i32) >> (y & 31)) as u32,
            AluOp::Mov => y,
        });
    }
    match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        AluOp::Div => a.checked_div(b).unwrap_or(0),
        AluOp::Mod => a.checked_rem(b).unwrap_or(a),
        AluOp::SignedDiv if b == 0 => 0,
        AluOp::SignedMod if b == 0 => a,
        AluOp::SignedDiv => (a as i64).wrapping_div(b as i64) as u64,
        AluOp::SignedMod => (a as i64).wrapping_rem(b as i64) as u64,
        AluOp::Or => a | b,
        AluOp::And => a & b,
        AluOp::Xor => a ^ b,
        AluOp::Lsh => a << (b & 63),
        AluOp::Rsh => a >> (b & 63),
        AluOp::Arsh => ((a as i64) >> (b & 63)) as u64,
        AluOp::Mov => b,
    }
}

fn compare(c: Condition, width: Width, a: u64, b: u64) -> bool {
    // Sign extension keeps both orders of 32-bit numbers.
    let (a, b) = if width == Width::W32 {
        (a as u32 as i32 as i64 as u64, b as u32 as i32 as i64 as u64)
    } else {
        (a, b)
    };
    match c {
        Condition::Eq => a == b,
        Condition::Ne => a != b,
        Condition::Gt => a > b,
        Condition::Ge => a >= b,
        Condition::Lt => a < b,
        Condition::Le => a <= b,
        Condition::SignedGt => a as i64 > b as i64,
        Condition::SignedGe => a as i64 >= b as i64,
        Condition::SignedLt => (a as i64) < b as i64,
        Condition::SignedLe => a as i64 <= b as i64,
        Condition::Test => a & b != 0,
    }
}
