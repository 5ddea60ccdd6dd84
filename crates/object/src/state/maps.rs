//! Maps whose values are maps (fastpath/state/maps.h).

use super::limits;
use crate::program::StateObject;

/// Bytes of `struct mr_map`, which is what an element takes.
const STORED: u32 = 16;

/// The declaration with the values as they lie in memory.
pub(super) fn stored(object: &StateObject) -> StateObject {
    StateObject {
        value_bytes: STORED,
        ..object.clone()
    }
}

/// Requirements of both kinds on a declaration that takes this many bytes.
pub(super) fn validate(object: &StateObject, bytes: u64) -> Result<(), String> {
    limits::descriptor(object)?;
    limits::capacity(object)?;
    limits::total(bytes)
}
