//! The arguments of a helper call, by their contract.

use std::cell::Cell;

use millrace_object::helper::{self, Arg, Helper, MAX_BYTES};
use millrace_object::insn::Reg;
use millrace_object::program::StateObject;

use super::calls::{Found, bad};
use super::{memory, read, stack, value};
use crate::domain::{Pointer, Region, Scalar, Value};
use crate::facts::{Access, ArgFact};
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::State;

/// Checks argument `i` of a call, from 0, and takes note of what the call does with it.
///
/// # Errors
/// `helper-argument`, and those of the memory that it names.
pub(super) fn argument(
    m: &Machine<'_>,
    st: &State,
    helper: &Helper,
    i: usize,
    arg: Arg,
    found: &mut Found,
) -> Verdict<ArgFact> {
    let reg = Reg(i as u8 + 1);
    let value = read(m, st, reg)?;
    let verb = format!("call of `{}`", helper.name);
    let pointer = |wanted: &str| match value {
        Value::Pointer(p) => memory::follow(m, p, &verb),
        Value::Scalar(s, _) => Err(bad(
            helper,
            i,
            &format!("is a number ({s}) instead of {wanted}"),
            "Pass the address of a variable, of packet bytes or of a map value.",
        )),
        Value::Gone(why) => Err(super::gone(m, "this argument", why)),
    };
    let bytes = Cell::new(0);
    let sized = |len: u64| -> Verdict<ArgFact> {
        bytes.set(len);
        let p = pointer("a pointer")?;
        let access = memory::readable(m, st, &p, len as i64, &verb)?;
        Ok(ArgFact::Memory {
            access,
            bytes: u32::try_from(len).ok(),
        })
    };
    let fact = match arg {
        Arg::Context => match value {
            Value::Pointer(p) if p.region == Region::Context && p.fixed() == Some(0) => {
                Ok(ArgFact::Context)
            }
            _ => Err(bad(
                helper,
                i,
                "is not the context",
                "Pass the pointer that the program was called with.",
            )),
        },
        Arg::Object => object(m, helper, i, &value, found),
        Arg::Timer => {
            super::timer::argument(m, helper, &pointer("the address of a timer")?).map(|o| {
                found.object = Some(o);
                ArgFact::Timer(o)
            })
        }
        Arg::Callback => super::timer::callback(helper, i, &value).map(|f| {
            found.callback = Some(f);
            ArgFact::Callback
        }),
        Arg::Scalar => match value {
            Value::Scalar(s, _) => Ok(ArgFact::Scalar(s.as_constant())),
            _ => Err(bad(
                helper,
                i,
                "is a pointer instead of a number",
                "Pass a number.",
            )),
        },
        Arg::Bytes { .. } => match value {
            // Checked together with the pointer before it.
            Value::Scalar(s, _) => Ok(ArgFact::Scalar(s.as_constant())),
            _ => Err(bad(
                helper,
                i,
                "is a pointer instead of a number of bytes",
                "Pass a number.",
            )),
        },
        Arg::Key => sized(u64::from(object_of(m, helper, found)?.key_bytes)),
        Arg::Value => sized(u64::from(object_of(m, helper, found)?.value_bytes)),
        Arg::Read { nullable: true } | Arg::Write { nullable: true }
            if value.as_constant() == Some(0) =>
        {
            let n = count(m, st, helper, i)?;
            m.enforce(n.r64.umax == 0, || {
                bad(
                    helper,
                    i,
                    &format!("is null, but its size is {n}"),
                    "Pass null only together with size 0.",
                )
            })?;
            Ok(ArgFact::Null)
        }
        Arg::Read { .. } => {
            let n = count(m, st, helper, i)?;
            let p = pointer("a pointer")?;
            bytes.set(n.r64.umax);
            let most = if planted::is(Planted::LeastSize) {
                n.r64.umin
            } else {
                n.r64.umax
            };
            let access = match is_unread(m, st, helper, i)? {
                true => memory::present(m, st, &p, most as i64, &verb)?,
                false => memory::readable(m, st, &p, most as i64, &verb)?,
            };
            Ok(ArgFact::Memory {
                access,
                bytes: fixed_count(&n),
            })
        }
        Arg::In(n) => sized(u64::from(n)),
        Arg::Text => {
            let p = pointer("a constant string")?;
            if helper.number == helper::SNPRINTF.number {
                super::format::reads_no_memory(m, helper, &p)?;
            }
            text(m, &p).ok_or_else(|| {
                bad(
                    helper,
                    i,
                    "is not a constant string",
                    "Pass a `static const char[]` or a literal.",
                )
            })
        }
        Arg::Update => {
            let n = count(m, st, helper, i)?;
            bytes.set(n.r64.umax);
            let p = pointer("a pointer")?;
            memory::readable(m, st, &p, n.r64.umax as i64, &verb)?;
            let access = written(m, st, &p, n.r64.umax, n.r64.umin, &verb, found)?;
            Ok(ArgFact::Memory {
                access,
                bytes: fixed_count(&n),
            })
        }
        Arg::InOut(n) => {
            let p = pointer("a pointer")?;
            memory::readable(m, st, &p, i64::from(n), &verb)?;
            let access = written(m, st, &p, u64::from(n), u64::from(n), &verb, found)?;
            Ok(ArgFact::Memory {
                access,
                bytes: Some(n),
            })
        }
        Arg::Write { .. } => {
            let n = count(m, st, helper, i)?;
            bytes.set(n.r64.umax);
            let p = pointer("a pointer")?;
            let access = written(m, st, &p, n.r64.umax, n.r64.umin, &verb, found)?;
            Ok(ArgFact::Memory {
                access,
                bytes: fixed_count(&n),
            })
        }
        Arg::Out(n) => {
            let p = pointer("a pointer")?;
            let access = written(m, st, &p, u64::from(n), u64::from(n), &verb, found)?;
            Ok(ArgFact::Memory {
                access,
                bytes: Some(n),
            })
        }
        Arg::KeyOut => {
            let n = object_of(m, helper, found)?.key_bytes;
            bytes.set(u64::from(n));
            let p = pointer("a pointer")?;
            let access = written(m, st, &p, u64::from(n), u64::from(n), &verb, found)?;
            Ok(ArgFact::Memory {
                access,
                bytes: Some(n),
            })
        }
        // Calls that have these are laid out as frames (`driver`).
        Arg::Function | Arg::Any | Arg::Iterator => Err(bad(
            helper,
            i,
            "is for a call that is laid out as what it stands for",
            "Report this; the call should have been expanded.",
        )),
        Arg::ValueOut => {
            let o = object_of(m, helper, found)?;
            let all = u64::from(o.value_bytes);
            bytes.set(all);
            if o.kind.membership() {
                sized(all)
            } else {
                let p = pointer("a pointer")?;
                let access = written(m, st, &p, all, all, &verb, found)?;
                Ok(ArgFact::Memory {
                    access,
                    bytes: u32::try_from(all).ok(),
                })
            }
        }
        Arg::Record => {
            let p = pointer("a reserved record")?;
            let Region::Record { object, bytes } = p.region else {
                return Err(bad(
                    helper,
                    i,
                    "is not a reserved record",
                    "Pass the pointer that the reservation returned.",
                ));
            };
            if p.fixed() != Some(0) {
                return Err(bad(
                    helper,
                    i,
                    "points into the middle of a record",
                    "Pass the pointer that the reservation returned.",
                ));
            }
            m.enforce(st.records.iter().any(|r| r.0 == p.id), || {
                bad(
                    helper,
                    i,
                    "is a record that is not held",
                    "Give each record back once.",
                )
            })?;
            found.given_back = Some(p.id);
            Ok(ArgFact::Memory {
                access: Access::Record(object),
                bytes: Some(bytes),
            })
        }
    };
    let most = match fact {
        Ok(ArgFact::Memory { bytes: Some(n), .. }) => bytes.get().max(u64::from(n)),
        _ => bytes.get(),
    };
    found.bytes = found.bytes.saturating_add(most);
    fact
}

/// Whether a helper does not look at this argument's bytes: the values of a line whose format reads memory at addresses, which are among
/// them.
fn is_unread(m: &Machine<'_>, st: &State, helper: &Helper, i: usize) -> Verdict<bool> {
    if helper.number != helper::TRACE_VPRINTK.number || i != 2 {
        return Ok(false);
    }
    match read(m, st, Reg(1))? {
        Value::Pointer(format) => super::format::reads_memory(m, &format),
        _ => Ok(false),
    }
}

/// A string in read-only bytes that no setting can change, at a known place.
fn text(m: &Machine<'_>, p: &Pointer) -> Option<ArgFact> {
    let (Region::Value(id), Some(from)) = (p.region, p.fixed()) else {
        return None;
    };
    let bytes = m.object(id).ok()?.initial.as_deref()?;
    let rest = bytes.get(usize::try_from(from).ok()?..)?;
    let length = rest.iter().position(|b| *b == 0)? + 1;
    m.program
        .constant(id, u32::try_from(from).ok()?, u32::try_from(length).ok()?)?;
    let access = value::check(m, p, id, 0, length as i64, false, "call").ok()?;
    Some(ArgFact::Memory {
        access,
        bytes: u32::try_from(length).ok(),
    })
}

fn fixed_count(n: &Scalar) -> Option<u32> {
    n.as_constant().and_then(|c| u32::try_from(c).ok())
}

fn written(
    m: &Machine<'_>,
    st: &State,
    p: &Pointer,
    most: u64,
    least: u64,
    verb: &str,
    found: &mut Found,
) -> Verdict<Access> {
    let access = memory::writable(m, st, p, 0, most as i64, verb)?;
    if let Region::Stack(frame) = p.region {
        let e = stack::extent(m, p, frame, 0, most as i64, verb)?;
        found.written.push((e, least.min(512) as u16));
    }
    Ok(access)
}

/// The number of bytes that the argument after this one gives.
fn count(m: &Machine<'_>, st: &State, helper: &Helper, i: usize) -> Verdict<Scalar> {
    let Some(Arg::Bytes { zero }) = helper.args.get(i + 1).copied() else {
        return Err(bad(
            helper,
            i,
            "has no size in the helper's contract",
            "Report this; the contract is wrong.",
        ));
    };
    let Value::Scalar(n, _) = read(m, st, Reg(i as u8 + 2))? else {
        return Err(bad(
            helper,
            i + 1,
            "is a pointer instead of a number of bytes",
            "Pass a number.",
        ));
    };
    m.needs_number(n.as_constant());
    let n = if n.r64.umax <= MAX_BYTES {
        n
    } else {
        m.enforce(false, || {
            bad(
                helper,
                i + 1,
                &format!("is a size that is not bounded ({n})"),
                "Bound it first: `if (size > LIMIT) return …;`, with an unsigned variable.",
            )
        })?;
        Scalar::between(0, MAX_BYTES)
    };
    m.enforce(zero || n.r64.umin > 0, || {
        bad(
            helper,
            i + 1,
            &format!("is a size that may be zero ({n})"),
            "Before the call, insert `if (size == 0) return …;`.",
        )
    })?;
    Ok(n)
}

fn object(
    m: &Machine<'_>,
    helper: &Helper,
    i: usize,
    value: &Value,
    found: &mut Found,
) -> Verdict<ArgFact> {
    let Value::Pointer(Pointer {
        region: Region::Object(id) | Region::Inner(id),
        off: 0,
        nullable,
        ..
    }) = *value
    else {
        return Err(bad(
            helper,
            i,
            "is not a state object",
            "Pass the address of an object that the file declares.",
        ));
    };
    let o = m.object(id)?;
    m.enforce(!nullable, || {
        Fault::new(
            Rule::UncheckedNull,
            format!(
                "this call of `{}` works on one of `{}`, the result of a lookup, which may be null",
                helper.name, o.name
            ),
            "Before it, insert `if (!map) return …;`.",
        )
    })?;
    if o.does(helper).is_none() {
        return Err(bad(
            helper,
            i,
            &format!(
                "is `{}`, a {}; it works on: {}",
                o.name,
                o.kind.name,
                helper.kind_names()
            ),
            "Use the helper that belongs to this kind of object, or declare the object as one of these kinds.",
        ));
    }
    m.enforce(found.object.is_none_or(|o| o == id), || {
        bad(
            helper,
            i,
            &format!("is `{}`, and the timer is another map's", o.name),
            "Pass the map that the timer's entry is in.",
        )
    })?;
    found.object = Some(id);
    Ok(ArgFact::Object(id))
}

fn object_of<'m>(m: &'m Machine<'_>, helper: &Helper, found: &Found) -> Verdict<&'m StateObject> {
    match found.object {
        Some(id) => m.object(id),
        None => Err(bad(
            helper,
            0,
            "names no state object",
            "Report this; the contract is wrong.",
        )),
    }
}
