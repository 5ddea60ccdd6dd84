//! Reasons why packets run alone, in words: what the host counts packets by (`struct mr_transact`).

use millrace_check::facts::{Op, StepId};
use millrace_object::helper;
use millrace_object::insn::Insn;

use crate::codegen::Slice;
use crate::sync::lock::called;
use crate::sync::lock::effects::object;
use crate::sync::sites::held;

/// Those of the protocol itself, as `enum transact_why` numbers them.
pub const OF_PROTOCOL: [&str; 4] = [
    "a packet that reads more than 48 words, writes more than 24, or stores more than 32 times before it commits",
    "an insertion by a worker whose pool of entries is empty",
    "an insertion into a bucket that is full",
    "a packet that did not commit in 64 attempts",
];

/// A packet at whose time a set's expiry is due: that runs before it, alone.
pub const EVENT: &str = "an expiry that is due at a packet's time";

/// Steps that run alone, each text once.
#[derive(Default)]
pub struct Whys(pub Vec<String>);

impl Whys {
    /// The number of a step's.
    pub fn of(&mut self, whole: &Slice, id: StepId) -> usize {
        self.number(said(whole, id))
    }

    /// The number of a text.
    pub fn number(&mut self, text: String) -> usize {
        self.0.iter().position(|t| *t == text).unwrap_or_else(|| {
            self.0.push(text);
            self.0.len() - 1
        })
    }
}

/// A step with its line.
fn said(whole: &Slice, id: StepId) -> String {
    let step = whole.step(id);
    let what = match step.op {
        Op::Plain(Insn::Call { helper }) => match helper::by_number(helper) {
            Some(helper) => match object(step, helper) {
                Some(object) => of(helper.name, called(whole.program, object)),
                None => helper.name.to_owned(),
            },
            None => "a call".to_owned(),
        },
        Op::Plain(Insn::Atomic { .. }) => of("an atomic operation", held(whole, id)),
        Op::Plain(Insn::Store { .. }) => of("a store", held(whole, id)),
        _ => "a step".to_owned(),
    };
    format!("{}: {what}", whole.place(step))
}

/// An operation with its object, where that is known: what a profile reads the object from.
fn of(what: &str, object: &str) -> String {
    match object {
        "" => what.to_owned(),
        object => format!("{what} of {object}"),
    }
}
