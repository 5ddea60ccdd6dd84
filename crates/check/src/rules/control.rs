//! Branches, calls within the program, returns and the end.

use std::rc::Rc;

use millrace_object::insn::{Condition, Operand, Reg, Width};
use millrace_object::program::Role;

use super::{iterator, packet, read, relation};
use crate::collect::Narrow;
use crate::dispatch;
use crate::domain::assume::assume;
use crate::domain::{Gone, Link, Pointer, Region, Scalar, Value};
use crate::facts::FrameId;
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::{FrameState, State};

/// What is known where a branch's condition holds, and where it fails; none where that cannot be.
pub type Sides = (Option<State>, Option<State>);

/// A conditional branch.
///
/// # Errors
/// `pointer-comparison`, and those of reading.
pub fn branch(
    m: &mut Machine<'_>,
    st: State,
    condition: Condition,
    width: Width,
    left: Reg,
    right: Operand,
) -> Verdict<Sides> {
    let a = read(m, &st, left)?;
    let b = match right {
        Operand::Reg(r) => read(m, &st, r)?,
        Operand::Imm(i) => Value::constant(i as u64),
    };
    if width == Width::W32 {
        let noted = m.facts.narrow(m.at, narrow(condition, &a, &b));
        m.or(noted, || ())?;
    }
    let m = &*m;
    match (a, b) {
        (Value::Scalar(x, i), Value::Scalar(y, j)) => {
            let same = matches!(right, Operand::Reg(r) if r == left)
                || i.id != 0 && i == j && !i.low && !i.up;
            let side = |holds: bool, mut st: State| {
                if same && !reflexive(condition, holds, &x) {
                    return None;
                }
                let (p, q) = assume(condition, width, holds, &x, &y)?;
                sharpen(&mut st, left, p, i);
                if let Operand::Reg(r) = right {
                    sharpen(&mut st, r, q, j);
                }
                Some(st)
            };
            Ok((side(true, st.clone()), side(false, st)))
        }
        (Value::Pointer(p), Value::Scalar(s, _)) | (Value::Scalar(s, _), Value::Pointer(p))
            if s.as_constant() == Some(0)
                && (width == Width::W64 || p.of_packet())
                && matches!(condition, Condition::Eq | Condition::Ne) =>
        {
            // `data` and `data_end` are declared as 32-bit fields, so compilers test them at 32 bits;
            // the author asks whether the pointer is null, and it never is.
            Ok(null_test(st, &p, condition))
        }
        (Value::Pointer(p), Value::Pointer(q))
            if relation::comparable(m, condition, width, &p, &q) =>
        {
            let side = |holds: bool, mut st: State| {
                if p.of_packet() {
                    return packet::compare(&mut st, condition, holds, &p, &q).then_some(st);
                }
                let (p, q) = relation::ordered(condition, holds, &p, &q)?;
                st.set(left, Value::Pointer(p));
                if let Operand::Reg(r) = right {
                    st.set(r, Value::Pointer(q));
                }
                Some(st)
            };
            Ok((side(true, st.clone()), side(false, st)))
        }
        (Value::Pointer(p), Value::Pointer(q))
            if width == Width::W64 && matches!(condition, Condition::Eq | Condition::Ne) =>
        {
            match same_object(m, &p, &q) {
                Some(same) if same == (condition == Condition::Eq) => Ok((Some(st), None)),
                Some(_) => Ok((None, Some(st))),
                None => m.or(Err(unrelated(m, a, b)), || (Some(st.clone()), Some(st))),
            }
        }
        _ => m.or(Err(unrelated(m, a, b)), || (Some(st.clone()), Some(st))),
    }
}

/// What a comparison of 32 bits works on. Of numbers that have no more bits, 64 bits compare the same.
fn narrow(condition: Condition, a: &Value, b: &Value) -> Option<Narrow> {
    let signed = matches!(
        condition,
        Condition::SignedGt | Condition::SignedGe | Condition::SignedLt | Condition::SignedLe
    );
    let small = |v: &Value| match v {
        Value::Scalar(s, _) => s.r64.umax <= u64::from(u32::MAX),
        Value::Pointer(p) => p.narrow(),
        Value::Gone(_) => false,
    };
    match (a, b) {
        _ if signed || !small(a) || !small(b) => Some(Narrow::Cut),
        (Value::Scalar(..), Value::Scalar(..)) => None,
        _ => Some(Narrow::Left),
    }
}

fn unrelated(m: &Machine<'_>, a: Value, b: Value) -> Fault {
    let moved = [a, b].iter().find_map(|v| match v {
        Value::Pointer(p) => super::moved(m, p),
        _ => None,
    });
    if let Some(fault) = moved {
        return fault;
    }
    Fault::new(
        Rule::PointerComparison,
        "this branch compares a pointer with something that is not known to be a pointer into the same memory; what it finds would tell where the host put things",
        "Compare packet pointers with `data_end`, results of lookups with null, and to tell two entries apart their keys.",
    )
}

/// Whether two addresses of state objects are of the same one; none if they are something else.
///
/// What a lookup in a map of maps gives is never the address of a declared map, even where that map is
/// what was found: it leads there (fastpath/state/maps.h). The comparisons of `dispatch` rest on that. An
/// author's comparison would ask whether the map is the same one, which the addresses do not tell.
fn same_object(m: &Machine<'_>, p: &Pointer, q: &Pointer) -> Option<bool> {
    let whole = |p: &Pointer| p.fixed() == Some(0) && !p.nullable && !p.half;
    if !whole(p) || !whole(q) {
        return None;
    }
    match (p.region, q.region) {
        (Region::Object(a), Region::Object(b)) => Some(a == b),
        (Region::Inner(_), Region::Object(_)) => {
            let step = m.flow.steps.get(m.at.0)?;
            dispatch::compares(m.program, m.flow, step).then_some(false)
        }
        _ => None,
    }
}

/// Whether `x condition x` can hold (or fail).
fn reflexive(condition: Condition, holds: bool, x: &Scalar) -> bool {
    let always = match condition {
        Condition::Eq
        | Condition::Ge
        | Condition::Le
        | Condition::SignedGe
        | Condition::SignedLe => Some(true),
        Condition::Ne
        | Condition::Gt
        | Condition::Lt
        | Condition::SignedGt
        | Condition::SignedLt => Some(false),
        Condition::Test => x.as_constant().map(|c| c != 0),
    };
    always.is_none_or(|a| a == holds)
}

fn sharpen(st: &mut State, reg: Reg, s: Scalar, link: Link) {
    st.set(reg, Value::Scalar(s, link));
    st.learn(link, s);
}

fn null_test(st: State, p: &Pointer, condition: Condition) -> Sides {
    let (null, other) = if p.nullable {
        let id = p.id;
        let all = planted::is(Planted::NullTestOfAll);
        let mut null = st.clone();
        null.rewrite(|v| match v {
            Value::Pointer(p) if p.nullable && p.id == id => Some(Value::constant(0)),
            _ => None,
        });
        null.records.retain(|r| r.0 != id);
        let mut other = st;
        other.rewrite(|v| match v {
            Value::Pointer(p) if p.nullable && (p.id == id || all) => {
                Some(Value::Pointer(Pointer {
                    nullable: false,
                    ..*p
                }))
            }
            _ => None,
        });
        (Some(null), Some(other))
    } else {
        (None, Some(st))
    };
    if condition == Condition::Eq {
        (null, other)
    } else {
        (other, null)
    }
}

/// Enters a function of the program.
pub fn enter(m: &Machine<'_>, st: &mut State, frame: FrameId) {
    let mut callee = FrameState::new(frame);
    let caller = st.frame();
    let arguments = m.flow.frames.get(frame.0).map_or(0, |f| f.arguments.min(5));
    for r in 1..=usize::from(arguments) {
        callee.regs[r] = caller.regs[r];
    }
    st.frames.push(Rc::new(callee));
}

/// Returns from a function of the program; `at` is the step after the call.
///
/// # Errors
/// `pointer-return`, and those of reading `r0`.
pub fn leave(m: &mut Machine<'_>, st: &mut State) -> Verdict<()> {
    // A function without a result leaves r0 unset; that is wrong only if the caller reads it.
    let value = st.reg(Reg(0));
    let own = st.frame().id;
    if let Value::Pointer(p) = value {
        m.enforce(p.region != Region::Stack(own), || {
            Fault::new(
                Rule::PointerReturn,
                "a function returns the address of its own local variable",
                "Let the caller own the variable.",
            )
        })?;
    }
    let value = iterator::result(m, st, value);
    iterator::left(m, st)?;
    m.facts.after(m.at, &value);
    st.frames.pop();
    st.rewrite(|v| match v {
        Value::Pointer(p) if p.region == Region::Stack(own) => Some(Value::Gone(Gone::Never)),
        _ => None,
    });
    for r in 1..=5 {
        st.set(Reg(r), Value::Gone(Gone::Call(m.at)));
    }
    st.set(Reg(0), value);
    Ok(())
}

/// The end of an entry.
///
/// # Errors
/// `pointer-return`, `record-leak`, and those of reading `r0`.
pub fn exit(m: &Machine<'_>, st: &State) -> Verdict<()> {
    let verdict = match m.role {
        // What these return is not looked at; in C they return nothing.
        Role::OnStart | Role::OnStop | Role::Every { .. } | Role::Timer | Role::Expiry => {
            Value::constant(0)
        }
        Role::Xdp | Role::OnPacket => read(m, st, Reg(0))?,
    };
    m.enforce(matches!(verdict, Value::Scalar(..)), || {
        Fault::new(
            Rule::PointerReturn,
            "the program returns a pointer",
            "Return a verdict.",
        )
    })?;
    nothing_held(m, st, "ends here")
}

/// Checks that no record is held where the program ends.
///
/// # Errors
/// `record-leak`.
pub fn nothing_held(m: &Machine<'_>, st: &State, verb: &str) -> Verdict<()> {
    let held = st.records.first().map(|r| m.place(r.1));
    if st.records.first().is_some_and(|r| r.0 == super::lock::LOCK) {
        m.enforce(false, || {
            Fault::new(
                Rule::LockPairing,
                format!(
                    "the program {verb} with the lock that it took at {}",
                    held.clone().unwrap_or_default()
                ),
                "On this way too, call `bpf_spin_unlock`.",
            )
        })?;
        return Ok(());
    }
    if st
        .records
        .first()
        .is_some_and(|r| iterator::is_iterator(r.0))
    {
        return m.enforce(false, || {
            Fault::new(
                Rule::Iterator,
                format!(
                    "the program {verb} with the iterator that it began at {}",
                    held.clone().unwrap_or_default()
                ),
                "On this way too, call `bpf_iter_num_destroy`.",
            )
        });
    }
    m.enforce(held.is_none(), || {
        Fault::new(
            Rule::RecordLeak,
            format!(
                "the program {verb} with the record that it reserved at {}",
                held.unwrap_or_default()
            ),
            "On this way too, call `bpf_ringbuf_submit` or `bpf_ringbuf_discard`.",
        )
    })
}
