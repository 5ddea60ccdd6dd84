//! `timer_fired`: the entry whose timer fires, or null if that entry has gone.
//!
//! What a timer's function is called from asks for this: the key is copied, so that deleting the entry leaves
//! it readable.

use super::{Arg, EXPANSION, Effects, Helper, Return, timer_init};

/// internal helper
pub static HELPER: Helper = Helper {
    number: EXPANSION + 2,
    name: "timer_fired",
    args: &[Arg::Object, Arg::KeyOut],
    returns: Return::ValueOrNull,
    kinds: timer_init::HELPER.kinds,
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
