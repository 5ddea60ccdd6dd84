//! Longest-prefix tries of either dialect (fastpath/state/lpm.h).

use super::limits;
use crate::program::StateObject;

pub(super) fn validate(object: &StateObject, bytes: u64) -> Result<(), String> {
    limits::value(object)?;
    limits::capacity(object)?;
    limits::total(bytes)
}

pub(super) fn bytes(object: &StateObject, address_bytes: u32) -> u64 {
    let value = u64::from(object.value_bytes).next_multiple_of(8);
    let address = u64::from(address_bytes).next_multiple_of(8);
    object.capacity.saturating_mul(value + address + 16)
}
