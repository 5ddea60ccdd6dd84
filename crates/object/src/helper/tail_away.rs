//! `tail_away`: a tail call in a function that another one calls.
//!
//! What `bpf_tail_call` is expanded into there: the function's caller goes on with what the other program
//! gives. 0 where the call falls through; else 2^32 plus that program's verdict, which is 32 bits.

use super::{Arg, EXPANSION, Effects, Helper, Return};

/// internal helper
pub static HELPER: Helper = Helper {
    number: EXPANSION + 1,
    name: "tail_away",
    args: &[Arg::Context, Arg::Object, Arg::Scalar],
    returns: Return::Scalar {
        min: 0,
        max: (1 << 33) - 1,
    },
    kinds: &["prog_array"],
    effects: Effects {
        // The other program may.
        moves_packet: true,
        state: true,
        other: true,
        ..Effects::NONE
    },
};
