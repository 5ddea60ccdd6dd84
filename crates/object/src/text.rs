//! Programs and instructions as text, in the notation of the kernel's verifier.

use std::fmt;

use crate::helper;
use crate::insn::{AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use crate::program::{Function, FunctionId, ObjectId, Program, Role, StateObject};

/// An instruction by itself: jump targets are `@index`, objects and functions numbers. With a
/// program at hand, [`Program::text`] knows their names.
#[must_use]
pub fn text(insn: &Insn) -> String {
    Shown { insn, within: None }.to_string()
}

impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown {
            insn: self,
            within: None,
        }
        .fmt(f)
    }
}

impl Program {
    /// The instruction `pc` of a function, with names of objects and functions, and with slot
    /// numbers for jump targets. Empty when there is no such instruction.
    #[must_use]
    pub fn text(&self, function: FunctionId, pc: usize) -> String {
        let function = self.functions.get(function.0);
        let found = function.and_then(|f| f.insns.get(pc).map(|insn| (f, insn)));
        found.map_or_else(String::new, |(function, insn)| {
            Shown {
                insn,
                within: Some((self, function)),
            }
            .to_string()
        })
    }
}

struct Shown<'a> {
    insn: &'a Insn,
    within: Option<(&'a Program, &'a Function)>,
}

fn register(reg: Reg, width: Width) -> String {
    match width {
        Width::W32 => format!("w{}", reg.0),
        Width::W64 => format!("r{}", reg.0),
    }
}

fn operand(operand: Operand, width: Width) -> String {
    match operand {
        Operand::Reg(reg) => register(reg, width),
        Operand::Imm(imm) => imm.to_string(),
    }
}

fn unsigned(size: Size) -> &'static str {
    match size {
        Size::B1 => "u8",
        Size::B2 => "u16",
        Size::B4 => "u32",
        Size::B8 => "u64",
    }
}

fn signed(size: Size) -> &'static str {
    match size {
        Size::B1 => "s8",
        Size::B2 => "s16",
        Size::B4 => "s32",
        Size::B8 => "s64",
    }
}

fn memory(name: &str, base: Reg, offset: i16) -> String {
    format!("*({name} *)(r{} {offset:+})", base.0)
}

fn alu(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "+=",
        AluOp::Sub => "-=",
        AluOp::Mul => "*=",
        AluOp::Div => "/=",
        AluOp::SignedDiv => "s/=",
        AluOp::Mod => "%=",
        AluOp::SignedMod => "s%=",
        AluOp::Or => "|=",
        AluOp::And => "&=",
        AluOp::Xor => "^=",
        AluOp::Lsh => "<<=",
        AluOp::Rsh => ">>=",
        AluOp::Arsh => "s>>=",
        AluOp::Mov => "=",
    }
}

fn relation(condition: Condition) -> &'static str {
    match condition {
        Condition::Eq => "==",
        Condition::Ne => "!=",
        Condition::Gt => ">",
        Condition::Ge => ">=",
        Condition::Lt => "<",
        Condition::Le => "<=",
        Condition::SignedGt => "s>",
        Condition::SignedGe => "s>=",
        Condition::SignedLt => "s<",
        Condition::SignedLe => "s<=",
        Condition::Test => "&",
    }
}

fn atomic(op: AtomicOp) -> (&'static str, &'static str) {
    match op {
        AtomicOp::Add => ("+=", "fetch_add"),
        AtomicOp::Or => ("|=", "fetch_or"),
        AtomicOp::And => ("&=", "fetch_and"),
        AtomicOp::Xor => ("^=", "fetch_xor"),
        AtomicOp::Exchange => ("=", "xchg"),
        AtomicOp::CompareExchange => ("=", "cmpxchg"),
    }
}

impl Shown<'_> {
    fn target(&self, index: usize) -> String {
        let slot = self
            .within
            .and_then(|(_, function)| function.slots.get(index));
        slot.map_or_else(|| format!("@{index}"), u32::to_string)
    }

    fn object(&self, id: ObjectId) -> String {
        let object = self
            .within
            .and_then(|(program, _)| program.objects.get(id.0));
        object.map_or_else(|| format!("object#{}", id.0), |o| o.name.clone())
    }

    fn function(&self, id: FunctionId) -> String {
        let function = self
            .within
            .and_then(|(program, _)| program.functions.get(id.0));
        function.map_or_else(|| format!("function#{}", id.0), |f| f.name.clone())
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let (dst, src) = (register(dst, width), operand(src, width));
                write!(f, "{dst} {} {src}", alu(op))
            }
            Insn::Neg { width, dst } => {
                let dst = register(dst, width);
                write!(f, "{dst} = -{dst}")
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let (dst, src) = (register(dst, width), register(src, width));
                write!(f, "{dst} = ({}){src}", signed(from))
            }
            Insn::ByteOrder { order, bits, dst } => {
                let name = match order {
                    ByteOrder::ToLittle => "le",
                    ByteOrder::ToBig => "be",
                    ByteOrder::Swap => "bswap",
                };
                write!(f, "r{0} = {name}{bits} r{0}", dst.0)
            }
            Insn::LoadImm { dst, value } => match value {
                Imm64::Number(n) => write!(f, "r{} = {n:#x} ll", dst.0),
                Imm64::Object(id) => write!(f, "r{} = {} ll", dst.0, self.object(id)),
                Imm64::ObjectValue { object, offset } => {
                    write!(f, "r{} = {}+{offset} ll", dst.0, self.object(object))
                }
                Imm64::Function(id) => write!(f, "r{} = {} ll", dst.0, self.function(id)),
            },
            Insn::Load {
                size,
                signed: is_signed,
                dst,
                base,
                offset,
            } => {
                let name = if is_signed {
                    signed(size)
                } else {
                    unsigned(size)
                };
                write!(f, "r{} = {}", dst.0, memory(name, base, offset))
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                let place = memory(unsigned(size), base, offset);
                write!(f, "{place} = {}", operand(src, Width::W64))
            }
            Insn::Atomic {
                op,
                fetch,
                size,
                base,
                offset,
                src,
            } => {
                let (sign, name) = atomic(op);
                let src = src.0;
                let bits = size.bytes() * 8;
                let address = format!("(u{bits} *)(r{} {offset:+})", base.0);
                match (op, fetch) {
                    (AtomicOp::CompareExchange, _) => {
                        write!(f, "r0 = atomic{bits}_{name}({address}, r0, r{src})")
                    }
                    (_, true) => write!(f, "r{src} = atomic{bits}_{name}({address}, r{src})"),
                    (_, false) => write!(f, "lock *{address} {sign} r{src}"),
                }
            }
            Insn::Jump { target } => write!(f, "goto {}", self.target(target)),
            Insn::Branch {
                condition,
                width,
                left,
                right,
                target,
            } => {
                let (left, right) = (register(left, width), operand(right, width));
                let target = self.target(target);
                write!(f, "if {left} {} {right} goto {target}", relation(condition))
            }
            Insn::Call { helper } => match helper::by_number(helper) {
                Some(known) => write!(f, "call {}#{helper}", known.name),
                None => write!(f, "call helper#{helper}"),
            },
            Insn::CallLocal { function } => write!(f, "call {}", self.function(function)),
            Insn::CallRegister { target } => write!(f, "callx r{}", target.0),
            Insn::LegacyPacketLoad => f.write_str("r0 = legacy packet load"),
            Insn::Exit => f.write_str("exit"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Xdp => f.write_str("xdp"),
            Role::OnPacket => f.write_str("on_packet"),
            Role::OnStart => f.write_str("on_start"),
            Role::OnStop => f.write_str("on_stop"),
            Role::Every { period } => write!(f, "every {period} ns"),
            Role::Timer => f.write_str("timer"),
            Role::Expiry => f.write_str("expiry"),
        }
    }
}

impl fmt::Display for StateObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name, self.name)?;
        let numbers = [
            ("key_bytes", u64::from(self.key_bytes)),
            ("value_bytes", u64::from(self.value_bytes)),
            ("capacity", self.capacity),
            ("flags", u64::from(self.flags)),
            ("expire_after", self.expire_after),
            ("first", self.first),
            ("rows", u64::from(self.rows)),
            ("window", self.window),
        ];
        for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            write!(f, " {name}={number}")?;
        }
        if let Some(at) = self.timer {
            write!(f, " timer={at}")?;
        }
        if self.read_only {
            f.write_str(" read_only")?;
        }
        if self.settable {
            f.write_str(" settable")?;
        }
        Ok(())
    }
}

/// The listing: objects, settings, entries, and every function with its source lines.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "program {} ({:?}, license {:?})",
            self.name, self.dialect, self.license
        )?;
        if !self.ports.is_empty() {
            writeln!(f, "ports {}", self.ports.join(", "))?;
        }
        if self.reasons.len() > 1 {
            writeln!(f, "reasons {}", self.reasons.join(", "))?;
        }
        for object in &self.objects {
            writeln!(f, "object {object}")?;
        }
        for param in &self.params {
            let home = self
                .objects
                .get(param.object.0)
                .map_or("", |o| o.name.as_str());
            writeln!(
                f,
                "param {} {} at {home}+{}",
                param.type_name, param.name, param.offset
            )?;
        }
        for entry in &self.entries {
            let name = self
                .functions
                .get(entry.function.0)
                .map_or("", |f| f.name.as_str());
            writeln!(f, "entry {}: {name}", entry.role)?;
        }
        for function in &self.functions {
            writeln!(f, "\n{} (section {}):", function.name, function.section)?;
            let mut last = None;
            let lines = function.slots.iter().zip(&function.lines);
            for (insn, (slot, line)) in function.insns.iter().zip(lines) {
                if let Some(line) = line
                    .as_ref()
                    .filter(|line| last != Some((&line.file, line.line)))
                {
                    writeln!(f, "  ; {}:{} {}", line.file, line.line, line.text)?;
                    last = Some((&line.file, line.line));
                }
                writeln!(
                    f,
                    "  {slot:4}: {}",
                    Shown {
                        insn,
                        within: Some((self, function))
                    }
                )?;
            }
        }
        Ok(())
    }
}
