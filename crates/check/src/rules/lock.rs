//! Spin locks: one at a time, given back on every way, and no call in between, as the kernel's verifier
//! has it (`process_spin_lock`). A lock that is held is kept among the records under an id of its own.

use millrace_object::helper::{Helper, spin_lock, spin_unlock};

use crate::domain::value::Id;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
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
    if helper.number == spin_unlock::HELPER.number {
        m.enforce(held.is_some(), || {
            fault(
                "this instruction gives back a lock, and none is held".into(),
                "Call `bpf_spin_lock` first on every way to here.",
            )
        })?;
        if let Some(at) = held {
            st.records.remove(at);
        }
        return Ok(());
    }
    m.enforce(held.is_none(), || {
        fault(
            format!(
                "this instruction calls `{}` while the lock taken at {} is held",
                helper.name,
                since.unwrap_or_default()
            ),
            "Call it before the lock is taken, or after `bpf_spin_unlock`.",
        )
    })?;
    if helper.number == spin_lock::HELPER.number {
        st.records.push((LOCK, m.at));
    }
    Ok(())
}

fn fault(reason: String, remedy: &str) -> Fault {
    Fault::new("lock-pairing", reason, remedy)
}
