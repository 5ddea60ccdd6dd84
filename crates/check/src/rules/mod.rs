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

use millrace_object::insn::{Reg, STACK};

use crate::domain::{Gone, Pointer, Scalar, Value};
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
        Value::Gone(why) => {
            let mut otherwise = Scalar::unknown();
            if let (Gone::Stack(frame, from, missing, _), true) = (why, m.gathers) {
                // As it will be once the zeros are stored, where all of it is missing.
                if [1, 3, 15, 255].contains(&missing) {
                    otherwise = Scalar::constant(0);
                }
                let mut bytes = [0; 8];
                for i in (0..8).filter(|i| missing >> i & 1 == 1) {
                    let at = (i64::from(from) + i + STACK) as usize;
                    bytes[at / 64 % 8] |= 1 << (at % 64);
                }
                m.reads_unwritten(frame, bytes);
            }
            m.or(Err(gone(m, &format!("r{}", reg.0), why)), || {
                Value::number(otherwise)
            })
        }
        v => Ok(v),
    }
}

/// The fault of following or comparing a pointer into the packet of before a move; none if it is another one.
#[must_use]
pub fn moved(m: &Machine<'_>, p: &Pointer) -> Option<Fault> {
    (p.moved()).map(|at| gone(m, "what is used here", Gone::PacketMoved(at)))
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
        Gone::Stack(_, from, missing, at) => Fault::new(
            Rule::UninitialisedStack,
            format!(
                "{what} was loaded at {} from the stack, where byte {} holds what is left of an address on this way, or of another kind of value",
                m.place(at),
                i32::from(from) + missing.trailing_zeros() as i32
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
