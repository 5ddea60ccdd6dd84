//! The rules, one family a file. Each is a function from what is known before an instruction to
//! what is known after it, or a [`Fault`].

pub mod alu;
mod arguments;
pub mod atomic;
pub mod callback;
pub mod calls;
pub mod context;
pub mod control;
pub mod format;
pub mod iterator;
pub mod lock;
pub mod memory;
pub mod packet;
pub mod relation;
pub mod stack;
pub mod tail;
pub mod timer;
pub mod value;

use millrace_object::insn::Reg;

use crate::domain::{Gone, Scalar, Value};
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::State;

/// What a register holds, if it may be read.
///
/// # Errors
/// `uninitialised-register`, `stale-packet-pointer`, `record-used-after`.
pub fn read(m: &Machine<'_>, st: &State, reg: Reg) -> Verdict<Value> {
    match st.reg(reg) {
        Value::Gone(why) => m.or(Err(gone(m, &format!("r{}", reg.0), why)), || {
            Value::number(Scalar::unknown())
        }),
        v => Ok(v),
    }
}

/// The fault of reading something that is not there.
#[must_use]
pub fn gone(m: &Machine<'_>, what: &str, why: Gone) -> Fault {
    match why {
        Gone::Never => Fault::new(
            Rule::UninitialisedRegister,
            format!(
                "{what} is read, but on this way through the program nothing has been written to it"
            ),
            "Give the variable a value where it is declared.",
        ),
        Gone::Call(at) => Fault::new(
            Rule::UninitialisedRegister,
            format!(
                "{what} is read, but the call at {} has overwritten it",
                m.place(at)
            ),
            "Declare the called function with its true result and arguments.",
        ),
        Gone::PacketMoved(at) => Fault::new(
            Rule::StalePacketPointer,
            format!(
                "{what} is a pointer into the packet of before the call at {}, which may have moved the packet",
                m.place(at)
            ),
            "After the call, load `data` and `data_end` from the context again and repeat the bounds check.",
        ),
        Gone::GivenBack(at) => Fault::new(
            Rule::RecordUsedAfter,
            format!(
                "{what} is a pointer into a record that was given back at {}",
                m.place(at)
            ),
            "Use the record only before it is submitted or discarded.",
        ),
        Gone::Stack(byte, at) => Fault::new(
            Rule::UninitialisedStack,
            format!(
                "{what} was loaded at {} from the stack, where byte {byte} had not been written on this way",
                m.place(at)
            ),
            "Give the variable a value where it is declared.",
        ),
        Gone::Join => Fault::new(
            Rule::UninitialisedRegister,
            format!("{what} holds different kinds of value in different rounds of a loop"),
            "Give the variable a value of one kind before the loop.",
        ),
    }
}
