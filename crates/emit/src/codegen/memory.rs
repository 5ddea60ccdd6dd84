//! Loads, stores and atomics.
//!
//! Memory is untyped bytes to BPF: every access goes through a type that may alias anything at any
//! alignment. Pointers that are spilled keep their type, so that LLVM sees what they point to when
//! they come back. Where a pointer into the packet is spilled to 4 bytes, its distance from the lowest address that the
//! packet may take lies there: that address stays as it is while a packet is at hand.
//!
//! One thread runs this code at a time, so an atomic is a plain read, operation and write with the same result; a
//! treatment that lets several do so replaces it (`crate::sync`).

use millrace_check::facts::{Access, StepId};
use millrace_object::insn::{AtomicOp, Insn, Operand, Reg, Size};

use super::body::Body;
use super::c::{Code, Local, Statement};
use super::context;
use super::forms::Forms;
use super::known::{Run, Stored};
use super::operand::memory_type;
use super::text::unsigned;
use crate::c;
use crate::error::Error;

/// `dst = *(size *)(base + offset)`.
pub fn load(body: &Body, id: StepId, insn: &Insn, form: Forms) -> Result<Vec<Statement>, Error> {
    let step = body.slice.step(id);
    let Insn::Load {
        size,
        signed,
        dst,
        base,
        offset,
    } = *insn
    else {
        return Err(body.slice.contradiction(step, "a load that is none"));
    };
    if let Some(Access::Context { offset }) = step.access {
        let expression = context::load(body, id, offset, size, signed, form)?;
        return Ok(body.assign(id, dst, form, &expression));
    }
    let address = body.address(id, base, offset)?;
    if form == Forms::POINTER {
        if size != Size::B8 {
            if !step.whole {
                return Err(body.slice.contradiction(step, "a pointer loaded in part"));
            }
            let place = c!("pkt->floor + *(mr_s32 *){}", address);
            return Ok(body.assign(id, dst, form, &place));
        }
        return Ok(body.assign(id, dst, form, &c!("*(mr_pointer *){}", address)));
    }
    // A value that carries a proof is read once: were it read again after the check, somebody else
    // could have changed it. `volatile` is what forbids the compiler the second read.
    let volatile = if step.load_once { "volatile " } else { "" };
    let kind = memory_type(size, signed);
    let known = body.known();
    let mut all: Vec<Statement> = Vec::new();
    if let Some(guard) = known.guarded(id) {
        let (at, leave) = (guard.at, &guard.leave);
        all.push(
            c!(
                "if (mr_unlikely({} != pkt->data + {})) {}",
                address,
                at,
                leave
            )
            .into(),
        );
    }
    let value = if let Some(runs) = known.load(id) {
        c!("MR_KNOWN({}, {}, {})", kind, address, composed(runs, size))
    } else if let Some(variable) = known.holds(id) {
        let (variable, raw) = (Local::Known(variable), memory_type(size, false));
        all.push(c!("{} = *(const {}{} *){};", variable, volatile, raw, address).into());
        match signed {
            true => c!("({}){}", kind, variable),
            false => variable.into(),
        }
    } else {
        c!("*(const {}{} *){}", volatile, kind, address)
    };
    all.extend(body.assign(id, dst, form, &value));
    Ok(all)
}

/// The bytes of a load, of the variables that hold them.
fn composed(runs: &[Run], size: Size) -> Code {
    let parts: Vec<Code> = (runs.iter())
        .map(|run| {
            let variable = Local::Known(run.variable);
            let low = match run.from {
                0 => variable.into(),
                from => c!("({} >> {})", variable, 8 * u32::from(from)),
            };
            let bits = 8 * u32::from(run.bytes);
            let part = match u32::from(run.bytes) == size.bytes() {
                true => return low,
                false => c!("(u64)(u{}){}", bits, low),
            };
            let part = match bits {
                8 | 16 | 32 => part,
                _ => c!("({} & {})", low, unsigned((1 << bits) - 1)),
            };
            match run.to {
                0 => part,
                to => c!("({} << {})", part, 8 * u32::from(to)),
            }
        })
        .collect();
    Code::join(&parts, " | ")
}

/// The value a store writes, and the type through which it does.
pub fn stored(
    body: &Body,
    id: StepId,
    size: Size,
    src: Operand,
) -> Result<(Code, &'static str), Error> {
    match src {
        Operand::Reg(src) if body.stores_pointer(id, src) => {
            if body.slice.step(id).whole {
                let from = c!("(u32)({} - pkt->floor)", body.pointer(id, src)?);
                return Ok((from, memory_type(size, false)));
            }
            if size != Size::B8 {
                return Ok((
                    c!("(u{}){}", size.bytes() * 8, body.scalar(id, src)?),
                    memory_type(size, false),
                ));
            }
            Ok((body.pointer(id, src)?, "mr_pointer"))
        }
        Operand::Reg(src) => {
            let value = body.scalar(id, src)?;
            let narrowed = if size == Size::B8 {
                value
            } else {
                c!("(u{}){}", size.bytes() * 8, value)
            };
            Ok((narrowed, memory_type(size, false)))
        }
        Operand::Imm(value) => {
            let mask = u64::MAX >> (64 - 8 * size.bytes());
            Ok((
                unsigned(value as u64 & mask).into(),
                memory_type(size, false),
            ))
        }
    }
}

/// `*(size *)(base + offset) = src`.
pub fn store(body: &Body, id: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
    let Insn::Store {
        size,
        base,
        offset,
        src,
    } = *insn
    else {
        return Err(body
            .slice
            .contradiction(body.slice.step(id), "a store that is none"));
    };
    let (value, kind) = stored(body, id, size, src)?;
    let value = match body.known().stored(id) {
        Some(Stored { sum, not, word }) => {
            let fold = if word { "fold32" } else { "fold64" };
            let not = if not { "~" } else { "" };
            c!("MR_MERGED({}, {}{}({}))", value, not, fold, Local::Sum(sum))
        }
        None => value,
    };
    let place = c!("*({} *){}", kind, body.address(id, base, offset)?);
    let instead = body.hooks.store(id, &place, &value);
    let holds = body.known().holds(id);
    match (instead, holds) {
        (Some(_), Some(_)) => Err(body
            .slice
            .contradiction(body.slice.step(id), "a store to the packet that is none")),
        (Some(instead), None) => Ok(instead),
        (None, None) => Ok(vec![c!("{} = {};", place, value).into()]),
        (None, Some(variable)) => Ok(vec![
            c!("{} = {};", Local::Known(variable), value).into(),
            c!("{} = {};", place, value).into(),
        ]),
    }
}

/// `*(size *)(base + offset) op= src`, and the old value where it is fetched.
pub fn atomic(body: &Body, id: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
    let Insn::Atomic {
        op,
        fetch,
        size,
        base,
        offset,
        src,
    } = *insn
    else {
        return Err(body
            .slice
            .contradiction(body.slice.step(id), "an atomic that is none"));
    };
    let address = body.address(id, base, offset)?;
    let place = c!("*({} *){}", memory_type(size, false), address);
    let value = |reg: Reg| -> Result<Code, Error> {
        let value = body.scalar(id, reg)?;
        Ok(if size == Size::B8 {
            value
        } else {
            c!("(u32){}", value)
        })
    };
    let operator = match op {
        AtomicOp::Add => Some("+"),
        AtomicOp::Or => Some("|"),
        AtomicOp::And => Some("&"),
        AtomicOp::Xor => Some("^"),
        AtomicOp::Exchange | AtomicOp::CompareExchange => None,
    };
    let source = value(src)?;
    let fetched = if op == AtomicOp::CompareExchange {
        Reg(0)
    } else {
        src
    };
    let update = match operator {
        Some(operator) if !fetch => {
            return Ok(vec![c!("{} {}= {};", place, operator, source).into()]);
        }
        Some(operator) => c!("{} = old {} {};", place, operator, source),
        None if op == AtomicOp::Exchange => c!("{} = {};", place, source),
        None => c!("if (old == {}) {} = {};", value(Reg(0))?, place, source),
    };
    let result = body.assigned(id, fetched, Forms::SCALAR, &"old".into());
    if result.is_empty() && op != AtomicOp::CompareExchange && operator.is_none() {
        return Ok(vec![update.into()]);
    }
    let mut all = vec![c!("const u{} old = {};", size.bytes() * 8, place), update];
    all.extend(result);
    Ok(vec![c!("{{ {} }}", Code::join(&all, " ")).into()])
}
