//! Tail calls: the program, or the function, ends where it makes one, so what holds at its end must hold
//! there.

use super::control;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::State;

/// Checks that the program may end here. The program that it goes on with is an entry of its own,
/// checked as such: it begins with the context alone. A function that is called back is called by a
/// helper, not by the program, which cannot be left from there.
///
/// # Errors
/// `tail-call-in-function`, and what [`control`] refuses at an exit.
pub fn leave(m: &Machine<'_>, st: &State) -> Verdict<()> {
    let frames = &m.flow.frames;
    let called_back = st.frames.iter().any(|f| {
        let expansion = frames.get(f.id.0).and_then(|f| f.expansion);
        expansion.is_some_and(|e| e.function.is_some())
    });
    m.enforce(!called_back, || {
        Fault::new(
            Rule::TailCallInFunction,
            "a tail call in a function that a helper calls back: the helper would still have to go on",
            "Return from the function, and make the tail call after the helper's.",
        )
    })?;
    control::nothing_held(m, st, "makes a tail call")
}
