//! Instructions as text, in the notation of the kernel's and LLVM's disassemblers.

use millrace_object::Program;
use millrace_object::helper;
use millrace_object::insn::{
    AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width,
};
use millrace_object::program::Function;

/// The instruction at slot `at` of a function.
pub fn disassemble(insn: &Insn, at: u32, function: &Function, program: &Program) -> String {
    let slot =
        |target: usize| function.slots.get(target).map_or(0, |s| i64::from(*s)) - i64::from(at) - 1;
    match *insn {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            let (dst, src) = (register(dst, width), operand(src, width));
            match op {
                AluOp::Mov => format!("{dst} = {src}"),
                _ => format!("{dst} {}= {src}", alu(op)),
            }
        }
        Insn::Neg { width, dst } => format!("{0} = -{0}", register(dst, width)),
        Insn::SignExtend {
            width,
            from,
            dst,
            src,
        } => {
            format!(
                "{} = (s{}){}",
                register(dst, width),
                from.bytes() * 8,
                register(src, width)
            )
        }
        Insn::ByteOrder { order, bits, dst } => {
            let name = match order {
                ByteOrder::ToLittle => "le",
                ByteOrder::ToBig => "be",
                ByteOrder::Swap => "bswap",
            };
            format!("r{0} = {name}{bits} r{0}", dst.0)
        }
        Insn::LoadImm { dst, value } => match value {
            Imm64::Number(number) => format!("r{} = {number:#x} ll", dst.0),
            Imm64::Object(object) => {
                format!("r{} = map[{}]", dst.0, object_name(program, object.0))
            }
            Imm64::ObjectValue { object, offset } => {
                format!(
                    "r{} = map[{}] + {offset}",
                    dst.0,
                    object_name(program, object.0)
                )
            }
            Imm64::Function(f) => {
                format!(
                    "r{} = {}",
                    dst.0,
                    program.functions.get(f.0).map_or("?", |f| f.name.as_str())
                )
            }
        },
        Insn::Load {
            size,
            signed,
            dst,
            base,
            offset,
        } => {
            format!("r{} = {}", dst.0, memory(size, signed, base, offset))
        }
        Insn::Store {
            size,
            base,
            offset,
            src,
        } => {
            format!(
                "{} = {}",
                memory(size, false, base, offset),
                operand(src, Width::W64)
            )
        }
        Insn::Atomic {
            op,
            fetch,
            size,
            base,
            offset,
            src,
        } => {
            let place = memory(size, false, base, offset);
            match op {
                AtomicOp::Exchange => format!("r{} = xchg({place}, r{})", src.0, src.0),
                AtomicOp::CompareExchange => format!("r0 = cmpxchg({place}, r0, r{})", src.0),
                _ if fetch => format!("r{0} = fetch {place} {1}= r{0}", src.0, atomic(op)),
                _ => format!("lock {place} {}= r{}", atomic(op), src.0),
            }
        }
        Insn::Jump { target } => format!("goto {:+}", slot(target)),
        Insn::Branch {
            condition,
            width,
            left,
            right,
            target,
        } => format!(
            "if {} {} {} goto {:+}",
            register(left, width),
            comparison(condition),
            operand(right, width),
            slot(target)
        ),
        Insn::Call { helper } => match helper::by_number(helper) {
            Some(h) => format!("call {}", h.name),
            None => format!("call {helper}"),
        },
        Insn::CallLocal { function } => {
            format!(
                "call {}",
                program
                    .functions
                    .get(function.0)
                    .map_or("?", |f| f.name.as_str())
            )
        }
        Insn::CallRegister { target } => format!("callx r{}", target.0),
        Insn::LegacyPacketLoad => "r0 = packet".into(),
        Insn::Exit => "exit".into(),
    }
}

fn object_name(program: &Program, object: usize) -> &str {
    program.objects.get(object).map_or("?", |o| o.name.as_str())
}

fn register(reg: Reg, width: Width) -> String {
    format!("{}{}", if width == Width::W64 { 'r' } else { 'w' }, reg.0)
}

fn operand(operand: Operand, width: Width) -> String {
    match operand {
        Operand::Reg(reg) => register(reg, width),
        Operand::Imm(value) if (-4096..=4096).contains(&value) => value.to_string(),
        Operand::Imm(value) if width == Width::W32 => format!("{:#x}", value as u32),
        Operand::Imm(value) => format!("{value:#x}"),
    }
}

fn memory(size: Size, signed: bool, base: Reg, offset: i16) -> String {
    format!(
        "*({}{} *)(r{} {offset:+})",
        if signed { 's' } else { 'u' },
        size.bytes() * 8,
        base.0
    )
}

fn alu(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "+",
        AluOp::Sub => "-",
        AluOp::Mul => "*",
        AluOp::Div => "/",
        AluOp::SignedDiv => "s/",
        AluOp::Mod => "%",
        AluOp::SignedMod => "s%",
        AluOp::Or => "|",
        AluOp::And => "&",
        AluOp::Xor => "^",
        AluOp::Lsh => "<<",
        AluOp::Rsh => ">>",
        AluOp::Arsh => "s>>",
        AluOp::Mov => "",
    }
}

fn atomic(op: AtomicOp) -> &'static str {
    match op {
        AtomicOp::Add => "+",
        AtomicOp::Or => "|",
        AtomicOp::And => "&",
        AtomicOp::Xor => "^",
        AtomicOp::Exchange | AtomicOp::CompareExchange => "",
    }
}

fn comparison(condition: Condition) -> &'static str {
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
