//! A handler's `MAP`: entries by key, absent once their age reaches `expire_after`.

use super::{
    Addressing, Call, Holds, PLAIN, StateKind, call, keyed, limits, look, timers, touch, write,
};
use crate::contract::Reach::{Bucket, Whole};
use crate::helper::{MAP_DELETE, MAP_GET, MAP_PUT, MAP_REFRESH};
use crate::insn::STACK;
use crate::program::StateObject;

/// `MILLRACE_MAP`
pub static KIND: StateKind = StateKind {
    name: "map",
    c: "hash",
    handler_kind: Some(1),
    addressing: Addressing::Key,
    holds: Holds::Values,
    hashed: true,
    calls: &[CALLS, timers::FIRED],
    at_capacity: "a new key is refused (null); present ones can be overwritten",
    validate,
    bytes: keyed::bytes,
    ..PLAIN
};

/// A new entry is one of a list of free ones.
const CALLS: &[Call] = &[
    call(&MAP_GET, look(Bucket)),
    call(&MAP_REFRESH, touch(Bucket)),
    call(&MAP_PUT, write(Whole)),
    call(&MAP_DELETE, write(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::options(object, &["expire_after"])?;
    keyed::validate(object)?;
    expires(object)
}

/// Longest life of an entry whose expiry runs a function, ns: with it any time of a packet is a moment that there is.
const LONGEST_LIFE: u64 = 1 << 62;

/// Refuses a function for the expiry of what never expires, or whose copies do not fit the stack that it is called from.
fn expires(object: &StateObject) -> Result<(), String> {
    if object.expiry.is_none() {
        return Ok(());
    }
    let room = u64::from(object.key_bytes.next_multiple_of(8))
        + u64::from(object.value_bytes.next_multiple_of(8));
    let stack = STACK.unsigned_abs();
    match object.expire_after {
        0 => Err("it has ON_EXPIRY and no .expire_after, so that nothing expires".to_owned()),
        life if life > LONGEST_LIFE => Err(format!(
            "its entries live {life} ns; with ON_EXPIRY at most {LONGEST_LIFE} are possible"
        )),
        _ if room > stack => Err(format!(
            "key and state take {room} bytes, and ON_EXPIRY gets copies of both in a stack of {stack}"
        )),
        _ => Ok(()),
    }
}
