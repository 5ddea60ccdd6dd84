//! Helper calls: the contract of `millrace_object::helper`, argument by argument.

use millrace_object::contract::Act;
use millrace_object::helper::{self, Helper, Return};
use millrace_object::insn::{Reg, STACK};
use millrace_object::program::{FunctionId, ObjectId, StateObject};

use super::arguments::argument;
use super::stack;
use crate::domain::{Gone, Pointer, Region, Scalar, Value};
use crate::facts::ArgFact;
use crate::machine::Machine;
use crate::members;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::State;

/// What the arguments of one call have been found to be.
#[derive(Default)]
pub(super) struct Found {
    pub(super) facts: Vec<ArgFact>,
    pub(super) object: Option<ObjectId>,
    pub(super) given_back: Option<u32>,
    /// what is called later
    pub(super) callback: Option<FunctionId>,
    /// stack memory that the helper writes: where, and how many bytes for certain
    pub(super) written: Vec<(stack::Extent, u16)>,
    /// how many bytes of its arguments' memory it touches at most
    pub(super) bytes: u64,
}

/// Steps that a call counts as, beside the bytes that it touches: one that finds an entry misses the cache once or twice.
const CALL: u64 = 32;

/// Calls a helper.
///
/// # Errors
/// `unknown-helper`, `helper-argument`, and those of the memory that its pointers name.
pub fn call(m: &mut Machine<'_>, st: &mut State, number: u32) -> Verdict<()> {
    let Some(helper) = helper::by_number(number) else {
        m.enforce(false, || unknown(number))?;
        for r in 1..=5 {
            st.set(Reg(r), Value::Gone(Gone::Call(m.at)));
        }
        return super::alu::write(m, st, Reg(0), Value::number(Scalar::unknown()));
    };
    let mut found = Found::default();
    for (i, &arg) in helper.args.iter().enumerate() {
        let fact = argument(m, st, helper, i, arg, &mut found)?;
        found.facts.push(fact);
    }
    // What a map that programs only read refuses, whatever its kind (kernel/bpf/verifier.c record_func_map).
    let writes = helper.is_kernels() && helper.does.is_some_and(|d| d.act == Act::Write);
    if let Some(object) = found.object.filter(|_| writes) {
        super::value::not_read_only(m, m.object(object)?, &format!("call of `{}`", helper.name))?;
    }
    if let (Some(object), Some(ArgFact::Scalar(member)), true) =
        (found.object, found.facts.get(1), members::takes(helper))
    {
        members::named(m.object(object)?, *member).map_err(|what| {
            bad(
                helper,
                1,
                what,
                "Name a member of the object's structure: `distributed_add(&counts, flows, 1)`.",
            )
        })?;
    }
    m.work = CALL.saturating_add(found.bytes);
    super::lock::call(m, st, helper)?;
    if [helper::TAIL_CALL.number, helper::TAIL_AWAY.number].contains(&helper.number) {
        super::tail::leave(m, st)?;
    }
    m.facts.args(m.at, &found.facts);
    if let (Some(object), Some(function)) = (found.object, found.callback) {
        m.facts.calls_later(object, function);
    }
    for (e, certain) in &found.written {
        if planted::is(Planted::HelperWriteForgotten) {
            continue;
        }
        stack::overwrite(st, e, *certain);
    }
    let at = m.at;
    if let Some(id) = found.given_back {
        st.records.retain(|r| r.0 != id);
    }
    if let Some(id) = found.given_back.filter(|_| !m.off(Rule::RecordUsedAfter)) {
        st.rewrite(|v| match v {
            Value::Pointer(p) if p.id == id && matches!(p.region, Region::Record { .. }) => {
                Some(Value::Gone(Gone::GivenBack(at)))
            }
            _ => None,
        });
    }
    if helper.effects.moves_packet && !m.off(Rule::StalePacketPointer) {
        st.rewrite(|v| match v {
            Value::Pointer(p) => match p.moved() {
                Some(before) => Some(Value::Gone(Gone::PacketMoved(before))),
                None => p.of_packet().then(|| {
                    Value::Pointer(Pointer {
                        half: p.half,
                        ..Pointer::to(Region::Moved(at))
                    })
                }),
            },
            _ => None,
        });
        // The metadata may have grown or gone; the packet's start is a new place.
        st.tidy();
        for b in &mut st.bases {
            if planted::is(Planted::MoveKeepsProof) {
                continue;
            }
            b.proven = Some(0);
            b.beyond = None;
        }
    }
    let result = result(m, st, helper, &found)?;
    for r in 1..=5 {
        if planted::is(Planted::CallKeepsRegisters) {
            continue;
        }
        st.set(Reg(r), Value::Gone(Gone::Call(at)));
    }
    super::alu::write(m, st, Reg(0), result)
}

/// The fault of a call of what is not there.
fn unknown(number: u32) -> Fault {
    if number == helper::ABSENT {
        return Fault::new(
            Rule::AbsentField,
            "this instruction needs a field, type, enumerator or kernel function that does not exist here",
            "Ask first: bpf_core_field_exists, bpf_core_type_exists, bpf_core_enum_value_exists, bpf_ksym_exists.",
        );
    }
    let what = match (
        helper::refused::by_number(number),
        helper::kernel::name(number),
    ) {
        (Some((name, why)), _) => format!("`bpf_{name}`, which is not supported: {why}"),
        (None, Some(name)) => {
            format!("`bpf_{name}` (helper {number}), which packet programs do not have")
        }
        (None, None) => format!("helper number {number}, which is none of the kernel's"),
    };
    let listed = "Use a helper that docs/support.md or docs/dialect.md lists.";
    Fault::new(
        Rule::UnknownHelper,
        format!("this instruction calls {what}"),
        helper::kernel::instead(number).unwrap_or(listed),
    )
}

pub(super) fn bad(helper: &Helper, i: usize, what: &str, remedy: &str) -> Fault {
    Fault::new(
        Rule::HelperArgument,
        format!("argument {} of `{}` {what}", i + 1, helper.name),
        remedy,
    )
}

/// Whether a lookup finds a value whatever happened before: an array has all of its values, so one with a constant index
/// of the stack that the array has finds it (the kernel since 6.15, `can_elide_value_nullness`). A shape stands for
/// arrays that may be smaller, unless all of its arrays have its capacity.
fn always_there(m: &Machine<'_>, st: &State, helper: &Helper, object: ObjectId) -> bool {
    let whole = |o: &StateObject| {
        o.kind.has_all() && o.shape().is_none() && (!o.is_shape() || o.one_capacity())
    };
    let Some(array) = m.object(object).ok().filter(|o| whole(o)) else {
        return false;
    };
    let index = || {
        let Value::Pointer(key) = st.reg(Reg(2)) else {
            return None;
        };
        let Region::Stack(frame) = key.region else {
            return None;
        };
        let at = u16::try_from(key.fixed()? + STACK).ok()?;
        let frame = st.frame_of(frame)?;
        if !frame.initialised(at, 4) {
            return None;
        }
        frame.load(at, 4)?.as_constant()
    };
    helper.number == helper::MAP_LOOKUP_ELEM.number && index().is_some_and(|i| i < array.capacity)
}

fn result(m: &Machine<'_>, st: &mut State, helper: &Helper, found: &Found) -> Verdict<Value> {
    let owner = || {
        found.object.ok_or_else(|| {
            bad(
                helper,
                0,
                "names no state object",
                "Report this; the contract is wrong.",
            )
        })
    };
    Ok(match helper.returns {
        Return::Scalar { min, max } => Value::number(Scalar::within(min, max)),
        Return::ValueOrNull => {
            let (id, object) = (st.fresh(), owner()?);
            let region = match m.object(object)?.shape() {
                Some(shape) => Region::Inner(shape),
                None => Region::Value(object),
            };
            Value::Pointer(Pointer {
                nullable: true,
                sure: always_there(m, st, helper, object),
                id,
                ..Pointer::to(region)
            })
        }
        Return::RecordOrNull => {
            let object = owner()?;
            m.needs_number(None);
            let Some(ArgFact::Scalar(Some(bytes))) = found.facts.get(1).copied() else {
                return Err(bad(
                    helper,
                    1,
                    "is not a constant",
                    "Reserve records of a constant size: `sizeof(struct …)`.",
                ));
            };
            let bytes = u32::try_from(bytes)
                .ok()
                .filter(|&b| u64::from(b) < m.object(object).map_or(0, |o| o.capacity));
            let Some(bytes) = bytes else {
                return Err(bad(
                    helper,
                    1,
                    "is more than the ring buffer holds",
                    "Declare a larger ring buffer, or reserve less.",
                ));
            };
            let id = st.fresh();
            st.records.push((id, m.at));
            Value::Pointer(Pointer {
                nullable: true,
                id,
                ..Pointer::to(Region::Record { object, bytes })
            })
        }
    })
}
