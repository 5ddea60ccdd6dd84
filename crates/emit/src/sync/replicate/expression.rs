//! Expressions of a history in C.

use millrace_check::facts::StepId;
use millrace_history::expr::Expr;
use millrace_object::insn::{Size, Width};

use crate::c;
use crate::codegen::{Body, Code, Local, context_number, memory_type, number, operators};
use crate::error::Error;

/// The expression where the body is at a step; binds as tightly as a cast.
pub fn code(body: &Body, at: StepId, expr: &Expr) -> Result<Code, Error> {
    let go = |e: &Expr| code(body, at, e);
    Ok(match expr {
        Expr::Field(f) => c!("f{}", f),
        Expr::Number(n) => number(*n).into(),
        Expr::Time => "pkt->time".into(),
        Expr::Address(object, offset) => {
            c!("(u64)(uintptr_t)({})", body.unit.value(*object, *offset))
        }
        Expr::Register(frame, reg) => Local::Number(*frame, *reg).into(),
        Expr::Pointer(frame, reg) => c!("(u64)(uintptr_t){}", Local::Pointer(*frame, *reg)),
        Expr::Stack(frame, offset) => c!("row_load({}, 1)", body.stack_at(at, *frame, *offset)?),
        Expr::Kept(step) => c!("kept{}", step.0),
        Expr::Context(offset, size) => {
            let dialect = body.slice.program.dialect;
            let found = context_number(dialect, *offset, *size);
            found.ok_or_else(|| {
                body.slice
                    .unsupported(body.slice.step(at), "a load of the context")
            })?
        }
        Expr::Packet(address, size, signed) => {
            let load = c!("row_packet(pkt, {}, {})", go(address)?, size.bytes());
            extended(load, *size, *signed)
        }
        Expr::Constant(address, size, signed) => {
            let kind = memory_type(*size, false);
            let load = c!("(u64)*(const {} *)(uintptr_t){}", kind, go(address)?);
            extended(load, *size, *signed)
        }
        Expr::Byte(of, index) => c!("((u64){} >> {} & 0xff)", go(of)?, 8 * u32::from(*index)),
        Expr::Bytes(all) => bytes(body, at, all)?,
        // A history has no signed divisions (crates/history).
        Expr::Alu(op, width, a, b) => {
            operators::arithmetic(*op, *width, &go(a)?, &go(b)?).unwrap_or_else(|| "0".into())
        }
        Expr::Neg(Width::W64, e) => c!("(0 - {})", go(e)?),
        Expr::Neg(Width::W32, e) => c!("(u64)(u32)(0 - (u32){})", go(e)?),
        Expr::Extend(width, size, e) => {
            let from = c!("(s{}){}", 8 * size.bytes(), go(e)?);
            match width {
                Width::W64 => c!("(u64)(s64){}", from),
                Width::W32 => c!("(u64)(u32)(s32){}", from),
            }
        }
        Expr::Order(order, bits, e) => operators::ordered(*order, *bits, &go(e)?),
        Expr::Compare(condition, width, a, b) => {
            let compared = operators::compare(*condition, *width, &go(a)?, &go(b)?);
            c!("(u64)({})", compared)
        }
        Expr::Select(a, b, c) => c!("({} ? {} : {})", go(a)?, go(b)?, go(c)?),
        Expr::Index(e, list) => {
            let e = go(e)?;
            let last = list.len().saturating_sub(1);
            let mut text = Code::from(last.to_string());
            for (place, n) in list.iter().enumerate().take(last).rev() {
                text = c!("({} == {} ? {} : {})", e, number(*n), place, text);
            }
            c!("(u64){}", text)
        }
        Expr::Pick(e, list) => {
            let e = go(e)?;
            let last = list.len().saturating_sub(1);
            let mut text = Code::from(number(list.last().copied().unwrap_or(0)));
            for (place, n) in list.iter().enumerate().take(last).rev() {
                text = c!("({} == {} ? {} : {})", e, place, number(*n), text);
            }
            c!("(u64){}", text)
        }
    })
}

fn extended(load: Code, size: Size, signed: bool) -> Code {
    match (signed, size) {
        (false, _) | (true, Size::B8) => load,
        (true, size) => c!("(u64)(s64)(s{}){}", 8 * size.bytes(), load),
    }
}

/// Bytes side by side: those of one part of the stack in one load.
fn bytes(body: &Body, at: StepId, all: &[Expr]) -> Result<Code, Error> {
    if let Some(Expr::Stack(frame, from)) = all.first() {
        let run = (0..)
            .zip(all)
            .all(|(i, e)| *e == Expr::Stack(*frame, from + i));
        let object = body.stack.find(*frame, *from);
        let bytes = all.len() as i32;
        if run && object.is_some_and(|o| o.from <= *from && from + bytes <= o.to) {
            return Ok(c!(
                "row_load({}, {})",
                body.stack_at(at, *frame, *from)?,
                bytes
            ));
        }
    }
    let mut parts = Vec::new();
    for (i, e) in all.iter().enumerate() {
        parts.push(match e {
            Expr::Number(0) => continue,
            e => c!("(u64)({} & 0xff) << {}", code(body, at, e)?, 8 * i),
        });
    }
    Ok(match parts.is_empty() {
        true => "0".into(),
        false => c!("({})", Code::join(&parts, " | ")),
    })
}

/// The bits of a mask, moved together; `value` binds as tightly as a cast.
pub fn gathered(value: &Code, mask: u64) -> Code {
    runs(mask, |from, to, bits| match (from, to) {
        (0, 0) => c!("({} & {})", value, number(low(bits))),
        (from, 0) => c!("({} >> {} & {})", value, from, number(low(bits))),
        (from, to) => c!("({} >> {} & {}) << {}", value, from, number(low(bits)), to),
    })
}

/// The bits of a row's field at their places of a mask.
pub fn scattered(value: &str, mask: u64) -> Code {
    runs(mask, |to, from, bits| match (from, to) {
        (0, 0) if bits == mask.count_ones() => value.into(),
        (from, to) => c!("({} >> {} & {}) << {}", value, from, number(low(bits)), to),
    })
}

fn low(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits.min(64)).unwrap_or(0)
}

/// For each run of set bits: its place in the mask, its place among set bits, and how many they are.
fn runs(mask: u64, part: impl Fn(u32, u32, u32) -> Code) -> Code {
    let (mut parts, mut at, mut gathered) = (Vec::new(), 0, 0);
    while at < 64 {
        let bits = (mask >> at).trailing_ones();
        if bits == 0 {
            at += 1;
            continue;
        }
        parts.push(part(at, gathered, bits));
        at += bits;
        gathered += bits;
    }
    match parts.len() {
        0 => "0".into(),
        1 => parts.swap_remove(0),
        _ => Code::join(&parts, " | "),
    }
}
