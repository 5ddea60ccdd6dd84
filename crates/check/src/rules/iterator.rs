//! Iterators: begun before they are used, ended on every way and before their function returns, in eight aligned
//! bytes of the stack, as the kernel's verifier has it (`process_iter_arg`). One that has begun is kept among the
//! records that are held, under an id that says where it is.
//!
//! From `new` to `destroy` these bytes are the iterator's: the program neither reads nor writes them. What `next` gives
//! is a pointer that carries the iterator's id, and may be used to read the number, and for nothing else
//! (`check_kfunc_call`, `MEM_RDONLY` memory of four bytes).

use millrace_object::helper::{Helper, ITER_NUM_DESTROY, ITER_NUM_NEW, ITER_NUM_NEXT};
use millrace_object::insn::STACK;

use super::lock::LOCK;
use super::{gone, stack};
use crate::domain::value::Id;
use crate::domain::{Gone, Pointer, Region, Value};
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict, bytes};
use crate::rule::Rule;
use crate::state::State;

/// Bytes of an iterator.
const BYTES: i64 = 8;
/// Bytes of the number that `next` gives the address of; they come first.
const NUMBER: i64 = 4;
/// Places for iterators in a frame.
const SLOTS: Id = (STACK / BYTES) as Id;

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
    let begins = helper.number == ITER_NUM_NEW.number;
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
    } else if helper.number == ITER_NUM_DESTROY.number {
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
    // The pointer to an iterator's number is not one to the iterator.
    if is_iterator(p.id) {
        return None;
    }
    let depth = st.frames.iter().position(|f| f.id == frame)?;
    let at = p.fixed()?;
    if p.nullable || at % 8 != 0 || !(-STACK..=-8).contains(&at) {
        return None;
    }
    let id = depth * SLOTS as usize + ((at + STACK) / BYTES) as usize;
    Some((
        FIRST + Id::try_from(id).ok().filter(|i| *i < LOCK - FIRST)?,
        *p,
    ))
}

/// Where the iterator of this id is: how deep in the calls, and the offset of its first byte.
fn whereabouts(id: Id) -> (usize, i64) {
    let slot = id - FIRST;
    let at = i64::from(slot % SLOTS) * BYTES - STACK;
    ((slot / SLOTS) as usize, at)
}

/// Checks that bytes of the stack, `from..to`, may be touched through this pointer, as far as iterators go.
///
/// # Errors
/// `iterator`
pub fn untouched(
    m: &Machine<'_>,
    st: &State,
    p: &Pointer,
    (from, to): (i64, i64),
    write: bool,
    verb: &str,
) -> Verdict<()> {
    let own = expanded(m).is_some() || planted::is(Planted::IteratorOpen);
    if own || st.records.iter().all(|r| !is_iterator(r.0)) && !is_iterator(p.id) {
        return Ok(());
    }
    if is_iterator(p.id) {
        let (_, at) = whereabouts(p.id);
        return m.enforce(!write && from >= at && to <= at + NUMBER, || {
            Fault::new(
                Rule::Iterator,
                format!(
                    "this {verb} goes to {} of an iterator's number, which has {NUMBER} bytes, from 0, and is the iterator's alone to write",
                    bytes(from - at, to - at)
                ),
                "Copy the number into a variable of your own.",
            )
        });
    }
    let Region::Stack(frame) = p.region else {
        return Ok(());
    };
    let Some(depth) = st.frames.iter().position(|f| f.id == frame) else {
        return Ok(());
    };
    let hit = st.records.iter().find(|r| {
        let (of, at) = if is_iterator(r.0) {
            whereabouts(r.0)
        } else {
            return false;
        };
        of == depth && from < to && from < at + BYTES && at < to
    });
    m.enforce(hit.is_none(), || {
        Fault::new(
            Rule::Iterator,
            format!(
                "this {verb} touches {} of the stack, where the iterator is that was begun at {}",
                bytes(from, to),
                hit.map(|r| m.place(r.1)).unwrap_or_default()
            ),
            "Between `bpf_iter_num_new` and `bpf_iter_num_destroy` leave the iterator to the functions `bpf_iter_num_*`; the number is what `bpf_iter_num_next` points to.",
        )
    })
}

/// The helper that the step at hand is an instruction of, if it is one of the iterators'.
fn expanded(m: &Machine<'_>) -> Option<u32> {
    let step = m.flow.steps.get(m.at.0)?;
    let number = m.flow.frames.get(step.frame.0)?.expansion?.helper;
    [&ITER_NUM_NEW, &ITER_NUM_NEXT, &ITER_NUM_DESTROY]
        .iter()
        .any(|h| h.number == number)
        .then_some(number)
}

/// What the frame at hand, which is being left, gives: the address of an iterator's number says so.
pub fn result(m: &Machine<'_>, st: &State, value: Value) -> Value {
    match value {
        Value::Pointer(p) if expanded(m) == Some(ITER_NUM_NEXT.number) => match place(st, &p) {
            Some((id, p)) => Value::Pointer(Pointer { id, ..p }),
            None => value,
        },
        other => other,
    }
}

/// Checks that no iterator is in the frame at hand, which is being left.
///
/// # Errors
/// `iterator`
pub fn left(m: &Machine<'_>, st: &State) -> Verdict<()> {
    let depth = st.frames.len() - 1;
    let inside = |r: &&(Id, crate::facts::StepId)| is_iterator(r.0) && whereabouts(r.0).0 == depth;
    let held = st.records.iter().find(inside);
    let fine = held.is_none() || planted::is(Planted::IteratorLeft);
    m.enforce(fine, || {
        Fault::new(
            Rule::Iterator,
            format!(
                "this function returns with the iterator in its stack that it began at {}",
                held.map(|r| m.place(r.1)).unwrap_or_default()
            ),
            "Before it returns, on every way, call `bpf_iter_num_destroy`.",
        )
    })
}
