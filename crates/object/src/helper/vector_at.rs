//! `vector_at`: an element, or null beyond the last.
//!
//! `V *vector_at(vector, index)`, counted from 0.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10010
pub static HELPER: Helper = Helper {
    number: 0x1_0010,
    name: "vector_at",
    args: &[Arg::Object, Arg::Scalar],
    returns: Return::ValueOrNull,
    kinds: &["vector"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
