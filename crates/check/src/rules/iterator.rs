//! Iterators: begun before they are used, ended on every way, in eight aligned bytes of the stack, as the
//! kernel's verifier has it (`process_iter_arg`). One that has begun is kept among the records that are
//! held, under an id that says where it is.

use millrace_object::helper::{Helper, iter_num_destroy, iter_num_new};

use super::lock::LOCK;
use super::{gone, stack};
use crate::domain::value::Id;
use crate::domain::{Gone, Pointer, Region, Value};
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::{STACK, State};

/// Ids from here up to the lock's are of places; no record has them.
pub const FIRST: Id = LOCK - (1 << 16);

/// Whether what is held under this id is an iterator.
#[must_use]
pub fn is_iterator(id: Id) -> bool {
    (FIRST..LOCK).contains(&id)
}

/// Checks the argument of a call, and takes note of what begins and ends.
///
/// # Errors
/// `iterator`, and those of the stack.
pub fn call(m: &Machine<'_>, st: &mut State, helper: &Helper, value: Value) -> Verdict<()> {
    let fault = |what: &str, remedy: &str| {
        Fault::new(
            Rule::Iterator,
            format!("this call of `{}` {what}", helper.name),
            remedy,
        )
    };
    let place = match value {
        Value::Pointer(p) => place(st, &p),
        Value::Scalar(..) => None,
        Value::Gone(why) => return Err(gone(m, "the iterator", why)),
    };
    let Some((id, p)) = place else {
        return Err(fault(
            "does not get the address of eight aligned bytes of the stack",
            "Pass the address of a local `struct bpf_iter_num`.",
        ));
    };
    let held = st.records.iter().position(|r| r.0 == id);
    let begins = helper.number == iter_num_new::HELPER.number;
    m.enforce(held.is_none() == begins, || {
        if begins {
            fault(
                "begins an iterator that has begun",
                "End it first, with `bpf_iter_num_destroy`.",
            )
        } else {
            fault(
                "is of an iterator that has not begun, or has ended",
                "Begin it, with `bpf_iter_num_new`, on every way to here.",
            )
        }
    })?;
    if begins {
        st.records.push((id, m.at));
    } else if helper.number == iter_num_destroy::HELPER.number {
        if let Some(held) = held {
            st.records.remove(held);
        }
        // Pointers to its number stay what they are; there is nothing to read any more.
        if let Region::Stack(frame) = p.region {
            let extent = stack::extent(m, &p, frame, 0, 8, "call")?;
            stack::store(m, st, &extent, 8, Value::Gone(Gone::Never))?;
        }
    }
    Ok(())
}

/// The id of the iterator at this address.
fn place(st: &State, p: &Pointer) -> Option<(Id, Pointer)> {
    let Region::Stack(frame) = p.region else {
        return None;
    };
    let depth = st.frames.iter().position(|f| f.id == frame)?;
    let at = p.fixed()?;
    if p.nullable || at % 8 != 0 || !(-STACK..=-8).contains(&at) {
        return None;
    }
    let slots = (STACK / 8) as usize;
    let id = depth * slots + ((at + STACK) / 8) as usize;
    Some((
        FIRST + Id::try_from(id).ok().filter(|i| *i < LOCK - FIRST)?,
        *p,
    ))
}
