//! Timers in the values of a map: what they take beside it (fastpath/state/timers.h).

use super::{Call, call, memory, write};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{TIMER_CANCEL, TIMER_FIRED, TIMER_INIT, TIMER_SET_CALLBACK, TIMER_START};
use crate::program::{StateObject, TIMER_BYTES};

/// Timers that run are in one heap.
pub(super) const CALLS: &[Call] = &[
    call(&TIMER_INIT, write(Entry)),
    call(&TIMER_SET_CALLBACK, write(Entry)),
    call(&TIMER_START, write(Whole)),
    call(&TIMER_CANCEL, write(Whole)),
    call(&TIMER_FIRED, write(Whole)),
];

/// Entries whose expiry runs a function are found in the same way, and are in the same heap (`StateObject::expiry`).
pub(super) const FIRED: &[Call] = &[call(&TIMER_FIRED, write(Whole))];

/// Moment, order, place in the heap and function of a timer.
const TIMER: u64 = 24;
/// A place in the heap.
const PLACE: u64 = 4;

/// Bytes of a mapping of their own, 0 where nothing happens at a moment of its own.
pub(super) fn bytes(object: &StateObject) -> u64 {
    let timers = memory::part(object.capacity.saturating_mul(TIMER));
    match object.has_moments() {
        false => 0,
        true => memory::mapped(
            timers.saturating_add(memory::part(object.capacity.saturating_mul(PLACE))),
        ),
    }
}

/// Refuses a timer that is not in a value, or not where the kernel has it.
pub(super) fn validate(object: &StateObject) -> Result<(), String> {
    match object.timer {
        Some(at) if at % 8 != 0 => Err(format!(
            "its timer is at byte {at} of a value; it must be at a multiple of 8"
        )),
        Some(at) if u64::from(at) + u64::from(TIMER_BYTES) > u64::from(object.value_bytes) => {
            Err(format!(
                "its timer is at byte {at} of a value of {} bytes",
                object.value_bytes
            ))
        }
        _ => Ok(()),
    }
}
