//! Tail calls: the program ends where it makes one, so what holds at its end must hold there.

use super::control;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::state::State;

/// Checks that the program may end here. The program that it goes on with is an entry of its own,
/// checked as such: it begins with the context alone.
///
/// # Errors
/// `tail-call-in-function`, and what [`control`] refuses at an exit.
pub fn leave(m: &Machine<'_>, st: &State) -> Verdict<()> {
    let in_program = m.flow.steps.get(m.at.0).is_some_and(|s| s.frame.0 == 0);
    m.enforce(in_program, || {
        Fault::new(
            "tail-call-in-function",
            "a tail call in a function that another one calls: the rest of its caller would still have to run",
            "Declare the function `static __always_inline`, or make the tail call in the program itself.",
        )
    })?;
    control::nothing_held(m, st, "makes a tail call")
}
