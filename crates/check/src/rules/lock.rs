//! Spin locks: one at a time, given back on every way, and no call in between, as the kernel's verifier
//! has it (`process_spin_lock`). A lock that is held is kept among the records under an id of its own.

use millrace_object::helper::{Helper, SPIN_LOCK, SPIN_UNLOCK};
use millrace_object::insn::Reg;

use super::read;
use crate::domain::value::Id;
use crate::domain::{Pointer, Region, Value};
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::State;

/// What stands for the lock among the records that are held; no record has it.
pub const LOCK: Id = Id::MAX;

/// Takes or gives back, or sees to it that a call of another helper is made without a lock.
///
/// # Errors
/// `lock-pairing`.
pub fn call(m: &Machine<'_>, st: &mut State, helper: &Helper) -> Verdict<()> {
    let held = st.records.iter().position(|r| r.0 == LOCK);
    let since = held.and_then(|at| st.records.get(at)).map(|r| m.place(r.1));
    let place = || since.clone().unwrap_or_default();
    if helper.number == SPIN_UNLOCK.number {
        m.enforce(held.is_some(), || {
            fault(
                "this instruction gives back a lock, and none is held".into(),
                "Call `bpf_spin_lock` first on every way to here.",
            )
        })?;
        let given = named(m, st)?;
        m.enforce(held.is_none() || st.lock == Some(given), || {
            fault(
                format!(
                    "this instruction gives back another lock than the one taken at {}",
                    place()
                ),
                "Give back the lock that is held, by the pointer that it was taken with.",
            )
        })?;
        if let Some(at) = held {
            st.records.remove(at);
        }
        st.lock = None;
        return Ok(());
    }
    m.enforce(held.is_none(), || {
        fault(
            format!(
                "this instruction calls `{}` while the lock taken at {} is held",
                helper.name,
                place()
            ),
            "Call it before the lock is taken, or after `bpf_spin_unlock`.",
        )
    })?;
    if helper.number == SPIN_LOCK.number {
        st.lock = Some(named(m, st)?);
        st.records.push((LOCK, m.at));
    }
    Ok(())
}

/// The lock that the call names: a place in a value. Two pointers are to the same lock if they come from
/// the same lookup, or point into a global, of which there is one.
fn named(m: &Machine<'_>, st: &State) -> Verdict<Pointer> {
    let wrong = |what: &str| {
        fault(
            format!("this instruction names as lock {what}"),
            "Pass the address of the `struct bpf_spin_lock` in a map's value.",
        )
    };
    let Value::Pointer(p) = read(m, st, Reg(1))? else {
        return Err(wrong("a number"));
    };
    let any = planted::is(Planted::LockOfAnyEntry);
    let one = match p.region {
        Region::Value(o) => p.id != 0 || m.object(o)?.kind.is_global(),
        _ => return Err(wrong("something that is in no map's value")),
    };
    let fixed = p.fixed();
    m.enforce(one && fixed.is_some(), || {
        wrong("a place that is not always the same")
    })?;
    // The same place, however the pointer to it came about.
    Ok(Pointer {
        off: fixed.unwrap_or_default(),
        id: if any { 0 } else { p.id },
        ..Pointer::to(p.region)
    })
}

fn fault(reason: String, remedy: &str) -> Fault {
    Fault::new(Rule::LockPairing, reason, remedy)
}
