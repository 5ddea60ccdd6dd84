//! Atomic instructions: on map values, globals, records and the stack, 4 or 8 aligned bytes.

use millrace_object::insn::{AtomicOp, Reg, Size};

use super::{memory, read, stack};
use crate::domain::{Region, Scalar, Value};
use crate::machine::Machine;
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
    if let Region::Stack(frame) = p.region {
        let e = stack::extent(m, &p, frame, off, len, "atomic access")?;
        stack::require_bytes(m, st, &e)?;
        stack::overwrite(st, &e, e.len);
    }
    m.facts.access(m.at, access)?;
    let old = Value::number(Scalar::of_bits(size.bytes() * 8));
    match op {
        AtomicOp::CompareExchange => super::alu::write(m, st, Reg(0), old),
        _ if fetch => super::alu::write(m, st, src, old),
        _ => Ok(()),
    }
}
