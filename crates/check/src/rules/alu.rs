//! Arithmetic: on numbers as the domain says, on pointers only what keeps their region known.

use millrace_object::insn::{AluOp, ByteOrder, Imm64, Operand, Reg, Size, Width};

use super::packet::FARTHEST;
use super::{read, relation};
use crate::collect::Narrow;
use crate::domain::{Link, Pointer, Region, Scalar, Value, alu};
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::{Base, State};

/// The farthest from its region's start that a pointer may be moved; the kernel's figure.
pub const REACH: i64 = 1 << 29;

/// Writes a register.
///
/// # Errors
/// `frame-pointer`.
pub fn write(m: &mut Machine<'_>, st: &mut State, dst: Reg, value: Value) -> Verdict<()> {
    m.enforce(dst != Reg(10), || {
        Fault::new(
            Rule::FramePointer,
            "this instruction writes to r10, the frame pointer",
            "Compile the object again; compilers do not write this.",
        )
    })?;
    m.facts.after(m.at, &value);
    st.set(dst, value);
    Ok(())
}

/// `dst = dst op src`
///
/// # Errors
/// `pointer-arithmetic`, `pointer-reach`, and those of reading the operands.
pub fn binary(
    m: &mut Machine<'_>,
    st: &mut State,
    op: AluOp,
    width: Width,
    dst: Reg,
    src: Operand,
) -> Verdict<()> {
    if op == AluOp::Mov {
        return copy(m, st, width, dst, src);
    }
    // `r ^= r` and `r -= r` are zero whatever the register held, if it held a number.
    let right = match src {
        Operand::Reg(r) => read(m, st, r)?,
        Operand::Imm(i) => Value::constant(i as u64),
    };
    let left = read(m, st, dst)?;
    let same = matches!(src, Operand::Reg(r) if r == dst);
    let result = combined(m, st, op, width, same, left, right);
    let result = number_instead(m, result)?;
    if width == Width::W32 {
        narrow(m, op, &left, &right, &result)?;
    }
    write(m, st, dst, result)
}

/// Notes what an instruction of 32 bits has worked on, if 64 bits would give something else or if it was a pointer.
fn narrow(
    m: &mut Machine<'_>,
    op: AluOp,
    left: &Value,
    right: &Value,
    result: &Value,
) -> Verdict<()> {
    let noted = match (left, right, result) {
        (Value::Pointer(_), _, Value::Pointer(_)) => Narrow::Left,
        (_, Value::Pointer(_), Value::Pointer(_)) => Narrow::Right,
        (Value::Scalar(a, _), Value::Scalar(b, _), _) if exact(op, a, b) => return Ok(()),
        _ => Narrow::Cut,
    };
    let noted = m.facts.narrow(m.at, noted);
    m.or(noted, || ())
}

/// Whether a 32-bit sum or difference of two numbers is that of 64 bits, where the right one is read as a signed number
/// of 32 bits.
fn exact(op: AluOp, a: &Scalar, b: &Scalar) -> bool {
    let top = i64::from(u32::MAX);
    let Some(most) = i64::try_from(a.r64.umax).ok().filter(|n| *n <= top) else {
        return false;
    };
    let (least, by) = (a.r64.umin as i64, (b.r32.smin, b.r32.smax));
    let (least, most) = match op {
        AluOp::Add => (least + by.0, most + by.1),
        AluOp::Sub => (least - by.1, most - by.0),
        _ => return false,
    };
    least >= 0 && most <= top
}

/// What an operation on two values gives; `same` if they are of one register.
fn combined(
    m: &Machine<'_>,
    st: &mut State,
    op: AluOp,
    width: Width,
    same: bool,
    left: Value,
    right: Value,
) -> Verdict<Value> {
    Ok(match (left, right) {
        (Value::Scalar(..), Value::Scalar(..)) if same && matches!(op, AluOp::Xor | AluOp::Sub) => {
            Value::constant(0)
        }
        (Value::Scalar(a, i), Value::Scalar(b, j)) => Value::Scalar(
            alu::alu(op, width, &a, &b),
            moved(op, width, (&a, i), (&b, j)),
        ),
        (Value::Pointer(p), Value::Scalar(s, _)) if op == AluOp::Add => {
            Value::Pointer(shift(m, st, width, p, s)?)
        }
        (Value::Scalar(s, _), Value::Pointer(p)) if op == AluOp::Add => {
            Value::Pointer(shift(m, st, width, p, s)?)
        }
        (Value::Pointer(p), Value::Scalar(s, _)) if op == AluOp::Sub => {
            let minus = alu::neg(Width::W64, &s);
            Value::Pointer(shift(m, st, width, p, minus)?)
        }
        (Value::Pointer(p), Value::Pointer(q)) if op == AluOp::Sub => {
            let moved = || super::moved(m, &p).or(super::moved(m, &q));
            relation::distance(m, st, &p, &q, width)
                .ok_or_else(|| moved().unwrap_or_else(unrelated))?
        }
        _ => return Err(arithmetic(&format!("{op:?}"))),
    })
}

/// With `pointer-arithmetic` switched off its result is a number.
fn number_instead(m: &Machine<'_>, result: Verdict<Value>) -> Verdict<Value> {
    match result {
        Err(fault) if fault.rule == Rule::PointerArithmetic => {
            m.or(Err(fault), || Value::number(Scalar::unknown()))
        }
        other => other,
    }
}

/// How a sum is related to its terms: a number plus a constant keeps its name. At 32 bits only if
/// nothing wraps, so that the sum is the same at 64.
fn moved(op: AluOp, width: Width, a: (&Scalar, Link), b: (&Scalar, Link)) -> Link {
    let by = |n| b.0.as_constant() == Some(n) && width == Width::W64;
    match op {
        AluOp::And | AluOp::Mul if planted::is(Planted::LinkKept) => return a.1,
        AluOp::Lsh if by(32) => return a.1.shifted(),
        AluOp::Rsh if by(32) => return a.1.back(),
        _ => {}
    }
    let (number, link, c) = match (op, a.0.as_constant(), b.0.as_constant()) {
        (AluOp::Add, _, Some(c)) if a.1.id != 0 => (a.0, a.1, c as i64),
        (AluOp::Add, Some(c), _) if b.1.id != 0 => (b.0, b.1, c as i64),
        (AluOp::Sub, _, Some(c)) if a.1.id != 0 => (a.0, a.1, (c as i64).wrapping_neg()),
        _ => return Link::NONE,
    };
    if width == Width::W32 {
        // Addition modulo 2^32 of the constant read as a signed 32-bit number.
        let c = i64::from(c as i32);
        let top = u64::from(u32::MAX);
        let exact = number.r64.umax <= top
            && (number.r64.umin as i64)
                .checked_add(c)
                .is_some_and(|x| x >= 0)
            && (number.r64.umax as i64)
                .checked_add(c)
                .is_some_and(|x| x as u64 <= top);
        let sum = link.plus(c);
        return if exact { sum } else { sum.halved() };
    }
    link.plus(c)
}

fn arithmetic(op: &str) -> Fault {
    Fault::new(
        Rule::PointerArithmetic,
        format!(
            "`{}` on a pointer gives something that is no longer known to be inside its memory",
            op.to_lowercase()
        ),
        match op {
            // What clang makes of a test whether two lookups both found nothing.
            "Or" => JOINED,
            _ => {
                "On pointers, only add and subtract 64-bit numbers, and subtract pointers into the same memory."
            }
        },
    )
}

const JOINED: &str = "If this stands for a test of two pointers against null, as in `!a && !b`, keep the two apart: `if (!a) { __asm__ volatile(\"\"); if (!b) … }`.";

/// The number that a register holds, under a name that its copies can share: what a comparison of one teaches
/// holds for all. Constants need none.
pub fn with_name(st: &mut State, reg: Reg, value: Value) -> Value {
    match value {
        Value::Scalar(s, link) if link.id == 0 && s.as_constant().is_none() => {
            let named = Value::Scalar(s, Link::named(st.fresh()));
            st.set(reg, named);
            named
        }
        other => other,
    }
}

/// A copy links both numbers, so that a comparison of one teaches about the other.
fn copy(m: &mut Machine<'_>, st: &mut State, width: Width, dst: Reg, src: Operand) -> Verdict<()> {
    let reg = match src {
        Operand::Imm(i) => {
            let x = if width == Width::W32 {
                u64::from(i as u32)
            } else {
                i as u64
            };
            return write(m, st, dst, Value::constant(x));
        }
        Operand::Reg(reg) => reg,
    };
    let mut noted = None;
    let value = match read(m, st, reg)? {
        Value::Scalar(s, link) => {
            let cut = if width == Width::W32 {
                alu::zero_extend(32, &s)
            } else {
                s
            };
            if s.r64.umax > u64::from(u32::MAX) {
                noted = Some(Narrow::Cut);
            }
            if cut == s {
                with_name(st, reg, Value::Scalar(s, link))
            } else {
                Value::Scalar(cut, link.halved())
            }
        }
        Value::Pointer(p) if width == Width::W32 => {
            if p.narrow() {
                noted = Some(Narrow::Left);
                Value::Pointer(p)
            } else if relation::halves(&p) {
                Value::Pointer(Pointer { half: true, ..p })
            } else {
                number_instead(m, Err(arithmetic("a 32-bit copy")))?
            }
        }
        other => other,
    };
    if let Some(noted) = noted.filter(|_| width == Width::W32) {
        let noted = m.facts.narrow(m.at, noted);
        m.or(noted, || ())?;
    }
    write(m, st, dst, value)
}

/// `p + s`; with 32 bits, which say all of a pointer into the packet, `s` is its lower half as a signed number: then the
/// sum does not wrap.
fn shift(
    m: &Machine<'_>,
    st: &mut State,
    width: Width,
    mut p: Pointer,
    mut s: Scalar,
) -> Verdict<Pointer> {
    if width != Width::W64 {
        if !p.narrow() {
            return Err(arithmetic("32-bit arithmetic"));
        }
        s = alu::sign_extend(Width::W64, Size::B4, &s);
    }
    p.nullable &= !p.sure;
    m.enforce(!p.nullable, || {
        Fault::new(
            Rule::UncheckedNull,
            "this instruction moves a pointer that may be null",
            "Before it, insert `if (!pointer) return …;`.",
        )
    })?;
    if p.half {
        return Err(arithmetic("arithmetic on half"));
    }
    let fixed_only = matches!(
        p.region,
        Region::Context
            | Region::PacketEnd
            | Region::Object(_)
            | Region::Inner(_)
            | Region::Function(_)
    );
    if fixed_only && s.as_constant() != Some(0) {
        // The context is often passed on as `ctx + 0`; everything else has no use.
        if !(p.region == Region::Context && s.as_constant().is_some()) {
            return Err(arithmetic(match p.region {
                Region::PacketEnd => "moving `data_end`",
                Region::Context => "a variable offset into the context",
                Region::Function(_) => "moving the address of a function",
                _ => "moving the address of a state object",
            }));
        }
    }
    m.needs_number(s.as_constant());
    let (lo, hi) = (s.r64.smin, s.r64.smax);
    let reach = |x: i64| (-REACH..=REACH).contains(&x);
    m.enforce(reach(lo) && reach(hi) && reach(p.least().saturating_add(lo)) && reach(p.most().saturating_add(hi)), || {
        Fault::new(
            Rule::PointerReach,
            format!("a number that is not bounded ({s}) is added to a pointer"),
            format!("Bound it first, e.g. `if (n > LIMIT) return …;` or `n &= LIMIT;`; in a packet the limit is {FARTHEST}."),
        )
    })?;
    if let Some(c) = s.as_constant() {
        p.off = p.off.saturating_add(c as i64).clamp(-4 * REACH, 4 * REACH);
        return Ok(p);
    }
    let (lo, mut hi) = (lo.clamp(-REACH, REACH), hi.clamp(-REACH, REACH));
    let of_packet = matches!(p.region, Region::Packet(_) | Region::Meta(_));
    if planted::is(if of_packet {
        Planted::PacketOffsetLeast
    } else {
        Planted::OffsetLeast
    }) {
        hi = lo;
    }
    if let Region::Packet(id) | Region::Meta(id) = p.region {
        let new = st.fresh();
        let old = st.base(id).copied().unwrap_or(Base {
            id,
            lo: 0,
            hi: 0,
            proven: None,
            beyond: None,
        });
        // What was proved to be there after the old position is there after the new one, less the
        // farthest that the new one may be on.
        let proven = old.proven.map(|n| n - p.off - hi);
        let beyond = old.beyond.map(|n| n - p.off - lo);
        let base = Base {
            id: new,
            lo: old.lo + p.off + lo,
            hi: old.hi + p.off + hi,
            proven,
            beyond,
        };
        m.enforce(reach(base.lo) && reach(base.hi), || {
            Fault::new(
                Rule::PointerReach,
                "this position in the packet is not bounded",
                "Bound the number that is added first.",
            )
        })?;
        st.bases.push(base);
        p.region = if matches!(p.region, Region::Packet(_)) {
            Region::Packet(new)
        } else {
            Region::Meta(new)
        };
        p.off = 0;
        return Ok(p);
    }
    p.lo = p.lo.saturating_add(lo).clamp(-4 * REACH, 4 * REACH);
    p.hi = p.hi.saturating_add(hi).clamp(-4 * REACH, 4 * REACH);
    let zeros = (s.bits.value | s.bits.mask).trailing_zeros().min(63) as u8;
    p.align = p.align.min(zeros);
    Ok(p)
}

fn unrelated() -> Fault {
    Fault::new(
        Rule::PointerArithmetic,
        "the difference of these two pointers tells where the host put what they point to: they are not known to lead into the same memory",
        "Subtract pointers into the packet, into the same variable of the stack, or into the value that one lookup found; count places of other things with a number of your own.",
    )
}

/// `dst = -dst`
///
/// # Errors
/// `pointer-arithmetic`, and those of reading.
pub fn neg(m: &mut Machine<'_>, st: &mut State, width: Width, dst: Reg) -> Verdict<()> {
    unary(m, st, dst, dst, |s| alu::neg(width, s))
}

/// movsx
///
/// # Errors
/// `pointer-arithmetic`, and those of reading.
pub fn sign_extend(
    m: &mut Machine<'_>,
    st: &mut State,
    width: Width,
    from: Size,
    dst: Reg,
    src: Reg,
) -> Verdict<()> {
    unary(m, st, dst, src, |s| alu::sign_extend(width, from, s))
}

/// Byte order.
///
/// # Errors
/// `pointer-arithmetic`, and those of reading.
pub fn byte_order(
    m: &mut Machine<'_>,
    st: &mut State,
    order: ByteOrder,
    bits: u32,
    dst: Reg,
) -> Verdict<()> {
    if !matches!(bits, 16 | 32 | 64) {
        return Err(Fault::new(
            Rule::BadInstruction,
            "a byte-order instruction works on 16, 32 or 64 bits",
            "Compile the object again.",
        ));
    }
    unary(m, st, dst, dst, |s| alu::byte_order(order, bits, s))
}

fn unary(
    m: &mut Machine<'_>,
    st: &mut State,
    dst: Reg,
    src: Reg,
    f: impl Fn(&Scalar) -> Scalar,
) -> Verdict<()> {
    match read(m, st, src)? {
        Value::Scalar(s, _) => write(m, st, dst, Value::number(f(&s))),
        _ => {
            let result = number_instead(m, Err(arithmetic("this operation")))?;
            write(m, st, dst, result)
        }
    }
}

/// `dst = value`
///
/// # Errors
/// `unknown-object`, `value-bounds`.
pub fn load_imm(m: &mut Machine<'_>, st: &mut State, dst: Reg, value: Imm64) -> Verdict<()> {
    let value = match value {
        Imm64::Number(n) => Value::constant(n),
        Imm64::Object(o) => {
            m.object(o)?;
            Value::Pointer(Pointer::to(Region::Object(o)))
        }
        Imm64::ObjectValue { object, offset } => {
            m.object(object)?;
            Value::Pointer(Pointer {
                off: i64::from(offset),
                ..Pointer::to(Region::Value(object))
            })
        }
        Imm64::Function(f) => Value::Pointer(Pointer::to(Region::Function(f))),
    };
    write(m, st, dst, value)
}
