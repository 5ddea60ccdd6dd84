//! Values that are put in and taken out without a key: what queues, stacks and Bloom filters have in
//! common.

use super::{Call, call, elements, limits, look, write};
use crate::contract::Reach::Whole;
use crate::helper::{MAP_PEEK_ELEM, MAP_POP_ELEM, MAP_PUSH_ELEM};
use crate::program::StateObject;

/// Both ends are of the whole.
pub(super) const CALLS: &[Call] = &[
    call(&MAP_PUSH_ELEM, write(Whole)),
    call(&MAP_POP_ELEM, write(Whole)),
    call(&MAP_PEEK_ELEM, look(Whole)),
];

pub(super) fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, limits::PLACED)?;
    no_key(object)?;
    elements::validate(object)
}

pub(super) fn no_key(object: &StateObject) -> Result<(), String> {
    match object.key_bytes {
        0 => Ok(()),
        bytes => Err(format!(
            "a key of {bytes} bytes; a {} has no key, leave it out",
            object.kind.name
        )),
    }
}
