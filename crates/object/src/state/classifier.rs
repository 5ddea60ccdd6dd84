//! A handler's `CLASSIFIER`: the class of a key under rules that the host sets (crates/classify).

use super::{Addressing, Holds, PLAIN, StateKind, call, limits, look};
use crate::contract::Reach::Whole;
use crate::helper::CLASSIFY;
use crate::program::StateObject;

/// Rules that there is room for unless the author says otherwise, and the most that there can be.
const CAPACITY: u64 = 1 << 16;
const MOST_RULES: u64 = 1 << 20;
/// The most classes. Each has a key of its own in the model.
const MOST_CLASSES: u32 = 1 << 16;

/// `MILLRACE_CLASSIFIER`
pub static KIND: StateKind = StateKind {
    name: "classifier",
    c: "classifier",
    handler_kind: Some(6),
    addressing: Addressing::Key,
    holds: Holds::Rules,
    calls: &[&[call(&CLASSIFY, look(Whole))]],
    at_capacity: "takes no more rules from the host; the ones before stay in force",
    validate,
    bytes,
    ..PLAIN
};

/// Number of classes of an object, of which 0 is that of keys in no rule: `.classes`, or two.
#[must_use]
pub fn classes(object: &StateObject) -> u32 {
    match object.rows {
        0 => 2,
        classes => classes,
    }
}

/// Number of rules that an object has room for: `.capacity`, or 65,536.
#[must_use]
pub fn room(object: &StateObject) -> u64 {
    match object.capacity {
        0 => CAPACITY,
        rules => rules,
    }
}

fn validate(object: &StateObject) -> Result<(), String> {
    limits::options(object, &["rows"])?;
    limits::key(object)?;
    if object.value_bytes != 4 {
        return Err(format!(
            "a value of {} bytes; a class is a __u32",
            object.value_bytes
        ));
    }
    if object.rows > MOST_CLASSES {
        return Err(format!(
            "{} classes; {MOST_CLASSES} is the most",
            object.rows
        ));
    }
    if room(object) > MOST_RULES {
        return Err(format!(
            "a capacity of {} rules; {MOST_RULES} is the most",
            object.capacity
        ));
    }
    Ok(())
}

/// The table is the host's, one for all workers, and at most as large as the budget of `millrace_classify`.
fn bytes(_: &StateObject) -> u64 {
    0
}
