//! A handler's `SKETCH`: counts by key in little memory, never too low, a little too high (count-min:
//! Cormode and Muthukrishnan, J. Algorithms 55(1), 2005).

use super::{Addressing, Call, Holds, PLAIN, StateKind, add, call, limits, look, memory};
use crate::contract::Reach::Bucket;
use crate::helper::{SKETCH_ADD, SKETCH_COUNT};
use crate::program::StateObject;

/// Most rows: the error probability is exp(-rows).
const MAX_ROWS: u32 = 8;

/// `MILLRACE_SKETCH`
pub static KIND: StateKind = StateKind {
    name: "sketch",
    c: "sketch",
    handler_kind: Some(4),
    addressing: Addressing::Key,
    holds: Holds::Estimates,
    hashed: true,
    calls: &[CALLS],
    at_capacity: "is never full: the more keys there are, the further estimates lie above the truth",
    validate,
    bytes,
    ..PLAIN
};

/// Counters are of several keys.
const CALLS: &[Call] = &[
    call(&SKETCH_COUNT, look(Bucket)),
    call(&SKETCH_ADD, add(Bucket)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::options(object, &["window", "rows"])?;
    limits::key(object)?;
    if !matches!(object.value_bytes, 0 | 4) {
        return Err(format!(
            "a value of {} bytes; a sketch counts in a __u32",
            object.value_bytes
        ));
    }
    if !(1..=MAX_ROWS).contains(&object.rows) {
        return Err(format!(
            "{} rows; 1 to {MAX_ROWS} are possible",
            object.rows
        ));
    }
    limits::capacity(object)?;
    limits::total(bytes(object))
}

/// Columns are rounded up to a power of two; with a window each counter remembers which it counts.
fn bytes(object: &StateObject) -> u64 {
    let counter = if object.window == 0 { 4 } else { 8 };
    let row = memory::power_of_two(object.capacity).saturating_mul(counter);
    memory::mapped(row.saturating_mul(u64::from(object.rows)))
}
