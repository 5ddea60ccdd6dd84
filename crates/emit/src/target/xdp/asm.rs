//! The program's own instructions, as assembly that clang takes: the verifier of the kernel sees them as the author's compiler
//! made them. Only where the program asks for the time it is told that of the row or packet at hand.

use std::collections::BTreeSet;
use std::fmt::Write;

use millrace_object::helper;
use millrace_object::insn::{
    AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width,
};
use millrace_object::program::{Function, Program};

use super::{Input, object_name};
use crate::codegen::comment_text;
use crate::error::Error;
use crate::target::unsupported;

/// The C name of a function.
pub fn name(program: &Program, number: usize) -> String {
    let function = program.functions.get(number);
    let name = function.map_or("", |f| f.name.as_str());
    format!("f{number}_{}", crate::identifier(name))
}

/// What a program that asks for the time is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// the time of the row or packet at hand, by `replica_time`
    Row,
    /// what the kernel says
    Own,
}

/// All functions, each naked.
pub fn functions(input: &Input, clock: Clock) -> Result<String, Error> {
    let mut out = String::new();
    for number in 0..input.program.functions.len() {
        let _ = writeln!(
            out,
            "\nstatic __attribute__((naked, noinline, used)) int {}(void);",
            name(input.program, number)
        );
    }
    for (number, function) in input.program.functions.iter().enumerate() {
        out.push_str(&one(input, (number, clock), function)?);
    }
    Ok(out)
}

fn one(
    input: &Input,
    (number, clock): (usize, Clock),
    function: &Function,
) -> Result<String, Error> {
    let program = input.program;
    let mut targets = BTreeSet::new();
    for insn in &function.insns {
        if let Insn::Jump { target } | Insn::Branch { target, .. } = insn {
            targets.insert(*target);
        }
    }
    let label = |target: usize| format!("L{number}_{target}");
    let mut objects = BTreeSet::new();
    let mut body = String::new();
    let mut line = None;
    for (at, insn) in function.insns.iter().enumerate() {
        let from = function.lines.get(at).and_then(Option::as_ref);
        if from.is_some() && from.map(|l| (&l.file, l.line)) != line {
            line = from.map(|l| (&l.file, l.line));
            let text = comment_text(from.map_or("", |l| &l.text));
            let _ = writeln!(body, "\t\t/* {}: {text} */", from.map_or(0, |l| l.line));
        }
        if targets.contains(&at) {
            let _ = writeln!(body, "\t\t\"{}:\\n\"", label(at));
        }
        for text in instruction((program, clock), insn, &label, &mut objects)
            .ok_or_else(|| refused(input, function, at))?
        {
            let _ = writeln!(body, "\t\t\"{text}\\n\"");
        }
    }
    let operands: Vec<String> = objects
        .iter()
        .filter_map(|o| {
            let object = program.objects.get(*o)?;
            Some(format!("[o{o}] \"i\"(&{})", object_name(*o, object)))
        })
        .collect();
    Ok(format!(
        "\n/* {} */\nstatic __attribute__((naked, noinline, used)) int {}(void)\n{{\n\tasm volatile(\n{body}\t\t:\n\t\t: {}\n\t\t: \"memory\");\n}}\n",
        comment_text(&function.name),
        name(program, number),
        operands.join(", ")
    ))
}

fn refused(input: &Input, function: &Function, at: usize) -> Error {
    let line = function.lines.get(at).and_then(Option::as_ref);
    let what = match function.insns.get(at) {
        Some(Insn::Call { helper }) => {
            let name = helper::by_number(*helper).map_or("?", |h| h.name);
            format!("a replica in the kernel that calls {name}")
        }
        _ => "this instruction in a replica in the kernel".into(),
    };
    unsupported(input.program, line, what)
}

fn r(reg: Reg) -> String {
    format!("r{}", reg.0)
}

fn sized(width: Width, reg: Reg) -> String {
    match width {
        Width::W64 => format!("r{}", reg.0),
        Width::W32 => format!("w{}", reg.0),
    }
}

fn operand(width: Width, operand: Operand) -> String {
    match operand {
        Operand::Reg(reg) => sized(width, reg),
        Operand::Imm(n) => n.to_string(),
    }
}

fn kind(size: Size) -> u32 {
    8 * size.bytes()
}

fn place(base: Reg, offset: i16) -> String {
    match offset < 0 {
        true => format!("(r{} - {})", base.0, i32::from(offset).unsigned_abs()),
        false => format!("(r{} + {offset})", base.0),
    }
}

/// The lines of one instruction; none where the kernel has no such.
fn instruction(
    (program, clock): (&Program, Clock),
    insn: &Insn,
    label: &dyn Fn(usize) -> String,
    objects: &mut BTreeSet<usize>,
) -> Option<Vec<String>> {
    // The counter of `may_goto` is no register of the file's.
    let one = match *insn {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            let sign = match op {
                AluOp::Mov => "=",
                AluOp::Add => "+=",
                AluOp::Sub => "-=",
                AluOp::Mul => "*=",
                AluOp::Div => "/=",
                AluOp::SignedDiv => "s/=",
                AluOp::Mod => "%%=",
                AluOp::SignedMod => "s%%=",
                AluOp::Or => "|=",
                AluOp::And => "&=",
                AluOp::Xor => "^=",
                AluOp::Lsh => "<<=",
                AluOp::Rsh => ">>=",
                AluOp::Arsh => "s>>=",
            };
            format!("{} {sign} {}", sized(width, dst), operand(width, src))
        }
        Insn::Neg { width, dst } => {
            let dst = sized(width, dst);
            format!("{dst} = -{dst}")
        }
        Insn::SignExtend {
            width,
            from,
            dst,
            src,
        } => format!(
            "{} = (s{}){}",
            sized(width, dst),
            kind(from),
            sized(width, src)
        ),
        Insn::ByteOrder { order, bits, dst } => {
            let word = match order {
                ByteOrder::ToLittle => "le",
                ByteOrder::ToBig => "be",
                ByteOrder::Swap => "bswap",
            };
            format!("{0} = {word}{bits} {0}", r(dst))
        }
        Insn::LoadImm { dst, value } => match value {
            Imm64::Number(n) => format!("{} = {n:#x} ll", r(dst)),
            Imm64::Object(object) => {
                objects.insert(object.0);
                format!("{} = %[o{}] ll", r(dst), object.0)
            }
            Imm64::ObjectValue { object, offset } => {
                objects.insert(object.0);
                let mut all = vec![format!("{} = %[o{}] ll", r(dst), object.0)];
                if offset > 0 {
                    all.push(format!("{} += {offset}", r(dst)));
                }
                return Some(all);
            }
            Imm64::Function(_) => return None,
        },
        Insn::Load {
            size,
            signed,
            dst,
            base,
            offset,
        } => {
            let sign = if signed { 's' } else { 'u' };
            format!(
                "{} = *({sign}{} *){}",
                r(dst),
                kind(size),
                place(base, offset)
            )
        }
        Insn::Store {
            size,
            base,
            offset,
            src,
        } => {
            let value = match src {
                Operand::Reg(reg) => r(reg),
                Operand::Imm(n) => n.to_string(),
            };
            format!("*(u{} *){} = {value}", kind(size), place(base, offset))
        }
        Insn::Atomic {
            op,
            fetch,
            size,
            base,
            offset,
            src,
        } => atomic(op, fetch, size, &place(base, offset), src),
        Insn::Jump { target } => format!("goto {}", label(target)),
        Insn::Branch {
            condition,
            width,
            left,
            right,
            target,
        } => {
            let sign = match condition {
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
            };
            let (left, right) = (sized(width, left), operand(width, right));
            format!("if {left} {sign} {right} goto {}", label(target))
        }
        Insn::Call { helper } => {
            let known = helper::by_number(helper).filter(|h| h.number < 0x10000)?;
            match clock == Clock::Row && known.effects.time && known.args.is_empty() {
                true => "call replica_time".into(),
                false => format!("call {helper}"),
            }
        }
        Insn::CallLocal { function } => format!("call {}", name(program, function.0)),
        Insn::Exit => "exit".into(),
        Insn::CallRegister { .. } | Insn::LegacyPacketLoad => return None,
    };
    // The counter of `may_goto` is no register of the kernel's.
    match one.contains("r11") || one.contains("w11") {
        true => None,
        false => Some(vec![one]),
    }
}

fn atomic(op: AtomicOp, fetch: bool, size: Size, place: &str, src: Reg) -> String {
    let bits = kind(size);
    let reg = if bits == 64 {
        r(src)
    } else {
        format!("w{}", src.0)
    };
    let inner = place.trim_matches(['(', ')']);
    let (sign, word) = match op {
        AtomicOp::Add => ("+=", "add"),
        AtomicOp::Or => ("|=", "or"),
        AtomicOp::And => ("&=", "and"),
        AtomicOp::Xor => ("^=", "xor"),
        AtomicOp::Exchange if bits == 64 => return format!("{reg} = xchg_64({inner}, {reg})"),
        AtomicOp::Exchange => return format!("{reg} = xchg32_32({inner}, {reg})"),
        AtomicOp::CompareExchange if bits == 64 => {
            return format!("r0 = cmpxchg_64({inner}, r0, {reg})");
        }
        AtomicOp::CompareExchange => return format!("w0 = cmpxchg32_32({inner}, w0, {reg})"),
    };
    match fetch {
        true => format!("{reg} = atomic_fetch_{word}((u{bits} *){place}, {reg})"),
        false => format!("lock *(u{bits} *){place} {sign} {reg}"),
    }
}
