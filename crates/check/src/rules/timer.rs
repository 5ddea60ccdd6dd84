//! Timers in the values of maps: helpers take their address, the program itself does not touch them, as the
//! kernel's verifier has it (`process_timer_func`, `check_map_access`).

use millrace_object::helper::Helper;
use millrace_object::program::{FunctionId, ObjectId, StateObject, TIMER_BYTES};

use super::calls::bad;
use crate::domain::{Pointer, Region, Value};
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict, bytes};
use crate::rule::Rule;

/// The map in a value of which this is the timer.
///
/// # Errors
/// `helper-argument`
pub fn argument(m: &Machine<'_>, helper: &Helper, p: &Pointer) -> Verdict<ObjectId> {
    let fault = |what: &str| {
        bad(
            helper,
            0,
            what,
            "Pass the address of the `struct bpf_timer` in a map's value.",
        )
    };
    let Region::Value(id) = p.region else {
        return Err(fault("is not in a map's value"));
    };
    let object = m.object(id)?;
    let Some(at) = object.timer else {
        if object.kind.is_global() {
            return Err(fault(
                "is a variable of its own; timers are in the values of maps",
            ));
        }
        return Err(fault(&format!(
            "is in a value of `{}`, which has no timer",
            object.name
        )));
    };
    if p.fixed() != Some(i64::from(at)) {
        let found = bytes(p.least(), p.most() + 1);
        return Err(fault(&format!(
            "is {found} of a value of `{}`; its timer is at byte {at}",
            object.name
        )));
    }
    Ok(id)
}

/// The function that a timer is to call.
///
/// # Errors
/// `helper-argument`
pub fn callback(helper: &Helper, i: usize, value: &Value) -> Verdict<FunctionId> {
    match *value {
        Value::Pointer(p) => match p.region {
            Region::Function(f) if p == Pointer::to(p.region) => Ok(f),
            _ => Err(()),
        },
        _ => Err(()),
    }
    .map_err(|()| {
        bad(
            helper,
            i,
            "is not a function of this program",
            "Pass the name of a function.",
        )
    })
}

/// Checks that bytes `from..to` of a value are none of its timer.
///
/// # Errors
/// `timer-field`
pub fn untouched(
    m: &Machine<'_>,
    object: &StateObject,
    from: i64,
    to: i64,
    verb: &str,
) -> Verdict<()> {
    let Some(at) = object.timer.map(i64::from) else {
        return Ok(());
    };
    let end = at + i64::from(TIMER_BYTES);
    m.enforce(to <= at || from >= end, || {
        Fault::new(
            Rule::TimerField,
            format!(
                "this {verb} touches {} of a value of `{}`, whose bytes {at} to {} are its timer",
                bytes(from, to),
                object.name,
                end - 1
            ),
            "Leave the timer to the helpers `bpf_timer_*`; copy the other members one by one.",
        )
    })
}
