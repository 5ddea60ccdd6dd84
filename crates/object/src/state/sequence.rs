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

/// Map flags that change nothing here: where memory is, and access from outside.
pub(super) const FLAGS: &[(u32, &str)] = &[
    (1 << 2, "BPF_F_NUMA_NODE"),
    (1 << 3, "BPF_F_RDONLY"),
    (1 << 4, "BPF_F_WRONLY"),
];

pub(super) fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, FLAGS)?;
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
