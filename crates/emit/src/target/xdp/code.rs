//! Computations in C: numbers of 64 bits, as BPF computes with them.

use std::collections::BTreeMap;

use millrace_object::insn::{AluOp, ByteOrder, Condition, Width};

/// Bits of a row, numbered from the lowest of the first byte.
pub fn bits(row: &str, at: u32, count: u32) -> String {
    let (mut done, mut parts) = (0, Vec::new());
    while done < count {
        let place = at + done;
        let now = (8 - place % 8).min(count - done);
        let byte = format!("(u64){row}[{}]", place / 8);
        let part = match (place % 8, now) {
            (0, 8) => byte,
            (by, now) => format!("({byte} >> {by} & {:#x})", (1u32 << now) - 1),
        };
        parts.push(format!("{part} << {done}"));
        done += now;
    }
    match parts.is_empty() {
        true => "0".into(),
        false => format!("({})", parts.join(" | ")),
    }
}

/// A field's bits at their places of the mask.
pub fn scattered(value: &str, mask: u64) -> String {
    let (mut at, mut had, mut parts) = (0, 0, Vec::new());
    while at < 64 {
        let run = (mask >> at).trailing_ones();
        if run > 0 {
            let low = u64::MAX >> (64 - run);
            parts.push(format!("({value} >> {had} & {low:#x}ull) << {at}"));
            had += run;
        }
        at += run.max(1);
    }
    match parts.is_empty() {
        true => "0".into(),
        false => parts.join(" | "),
    }
}

/// The second of the pair whose first it is; else the last pair's.
pub fn chosen(e: &str, pairs: impl Iterator<Item = (u64, u64)>) -> String {
    let pairs: BTreeMap<usize, (u64, u64)> = pairs.enumerate().collect();
    let last = pairs.values().last().map_or(0, |p| p.1);
    let mut text = format!("{last:#x}ull");
    for (from, to) in pairs.values().rev().skip(1) {
        text = format!("({e} == {from:#x}ull ? {to:#x}ull : {text})");
    }
    text
}

pub fn narrow(width: Width, value: &str) -> String {
    match width {
        Width::W64 => value.into(),
        Width::W32 => format!("(u64)(u32){value}"),
    }
}

pub fn ordered(order: ByteOrder, bits: u32, value: &str) -> String {
    match (order, bits) {
        (ByteOrder::ToLittle, 64) => value.into(),
        (ByteOrder::ToLittle, bits) => format!("(u64)(u{bits}){value}"),
        (_, bits) => format!("(u64)__builtin_bswap{bits}((u{bits}){value})"),
    }
}

pub fn arithmetic(op: AluOp, width: Width, a: &str, b: &str) -> Option<String> {
    let bits = if width == Width::W64 { 64 } else { 32 };
    let (a, b) = (format!("(u{bits}){a}"), format!("(u{bits}){b}"));
    let amount = bits - 1;
    let value = match op {
        AluOp::Mov => b,
        AluOp::Add => format!("({a} + {b})"),
        AluOp::Sub => format!("({a} - {b})"),
        AluOp::Mul => format!("({a} * {b})"),
        AluOp::Or => format!("({a} | {b})"),
        AluOp::And => format!("({a} & {b})"),
        AluOp::Xor => format!("({a} ^ {b})"),
        AluOp::Lsh => format!("({a} << ({b} & {amount}))"),
        AluOp::Rsh => format!("({a} >> ({b} & {amount}))"),
        AluOp::Arsh => format!("(u{bits})((s{bits}){a} >> ({b} & {amount}))"),
        // By zero: as the kernel has it.
        AluOp::Div => format!("({b} ? {a} / {b} : 0)"),
        AluOp::Mod => format!("({b} ? {a} % {b} : {a})"),
        AluOp::SignedDiv | AluOp::SignedMod => return None,
    };
    Some(match width {
        Width::W64 => value,
        Width::W32 => format!("(u64){value}"),
    })
}

pub fn compare(condition: Condition, width: Width, a: &str, b: &str) -> String {
    let bits = if width == Width::W64 { 64 } else { 32 };
    let (sign, signed) = match condition {
        Condition::Eq => ("==", false),
        Condition::Ne => ("!=", false),
        Condition::Gt => (">", false),
        Condition::Ge => (">=", false),
        Condition::Lt => ("<", false),
        Condition::Le => ("<=", false),
        Condition::SignedGt => (">", true),
        Condition::SignedGe => (">=", true),
        Condition::SignedLt => ("<", true),
        Condition::SignedLe => ("<=", true),
        Condition::Test => return format!("((u{bits}){a} & (u{bits}){b}) != 0"),
    };
    let kind = if signed { 's' } else { 'u' };
    format!("({kind}{bits}){a} {sign} ({kind}{bits}){b}")
}
