//! Atomic instructions: on map values, globals, records and the stack, 4 or 8 aligned bytes.

use millrace_object::insn::{AluOp, AtomicOp, Reg, Size, Width};
use millrace_object::program::Dialect;

use super::{memory, read, stack};
use crate::domain::alu::alu;
use crate::domain::{Region, Scalar, Value};
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::State;

/// `*(size *)(base + off) op= src`
///
/// # Errors
/// `atomic`, and those of the memory's family.
#[expect(clippy::too_many_arguments, reason = "the fields of the instruction")]
pub fn atomic(
    m: &mut Machine<'_>,
    st: &mut State,
    op: AtomicOp,
    fetch: bool,
    size: Size,
    base: Reg,
    off: i16,
    src: Reg,
) -> Verdict<()> {
    let fault = |reason: &str, remedy: &str| Fault::new(Rule::Atomic, reason, remedy);
    let number = |m: &Machine<'_>, st: &State, r: Reg| match read(m, st, r)? {
        Value::Scalar(..) => Ok(()),
        _ => Err(fault(
            "an atomic instruction has a pointer as its operand",
            "Use numbers only.",
        )),
    };
    m.enforce(m.program.dialect == Dialect::Xdp, || {
        fault(
            "a handler uses an atomic instruction: it sees one packet at a time, and how many run at once is the plan's to \
             decide",
            "Read and write plainly, as in `count += 1`.",
        )
    })?;
    number(m, st, src)?;
    if op == AtomicOp::CompareExchange {
        number(m, st, Reg(0))?;
    }
    if !matches!(size, Size::B4 | Size::B8) {
        return Err(fault(
            "atomic instructions work on 4 or 8 bytes",
            "Use a 32-bit or 64-bit variable.",
        ));
    }
    let p = memory::address(m, st, base, "atomic access")?;
    if !matches!(
        p.region,
        Region::Value(_) | Region::Stack(_) | Region::Record { .. }
    ) {
        return Err(fault(
            "atomic instructions work on map values, globals, records and the stack only",
            "Use an ordinary load and store; nobody else changes the packet.",
        ));
    }
    let (off, len) = (i64::from(off), i64::from(size.bytes()));
    let aligned = (p.off + off) % len == 0
        && (p.lo == p.hi && p.lo % len == 0 || 1i64 << p.align.min(3) >= len);
    m.enforce(aligned, || {
        fault(
            &format!("this atomic access of {len} bytes is not aligned to {len} bytes"),
            "Align the variable to its size; do not pack it.",
        )
    })?;
    let access = memory::writable(m, st, &p, off, len, "atomic access")?;
    let mut old = Value::number(Scalar::of_bits(size.bytes() * 8));
    if let Region::Stack(frame) = p.region {
        let e = stack::extent(m, &p, frame, off, len, "atomic access")?;
        stack::require_bytes(m, st, &e)?;
        let forgotten = planted::is(Planted::AtomicForgotten);
        // Nobody else changes the stack: what an exact place held and holds then is known.
        if e.exact
            && let found @ Value::Scalar(before, _) = stack::load(m, st, &e, len as u8)?
            && let Value::Scalar(operand, _) = read(m, st, src)?
        {
            old = found;
            let after = Value::number(updated(op, size, &before, &operand));
            if !forgotten {
                stack::store(m, st, &e, len as u8, after)?;
            }
        } else if !forgotten {
            stack::overwrite(st, &e, e.len);
        }
    }
    m.facts.access(m.at, access)?;
    match op {
        AtomicOp::CompareExchange => super::alu::write(m, st, Reg(0), old),
        _ if fetch => super::alu::write(m, st, src, old),
        _ => Ok(()),
    }
}

/// What the place holds afterwards.
fn updated(op: AtomicOp, size: Size, before: &Scalar, operand: &Scalar) -> Scalar {
    let width = match size {
        Size::B8 => Width::W64,
        _ => Width::W32,
    };
    let by = |op| alu(op, width, before, operand);
    match op {
        AtomicOp::Add => by(AluOp::Add),
        AtomicOp::Or => by(AluOp::Or),
        AtomicOp::And => by(AluOp::And),
        AtomicOp::Xor => by(AluOp::Xor),
        AtomicOp::Exchange => by(AluOp::Mov),
        AtomicOp::CompareExchange => before.join(&by(AluOp::Mov)),
    }
}
