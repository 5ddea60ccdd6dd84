//! `tail_call`: goes on with another program, and does not come back.
//!
//! `long bpf_tail_call(ctx, prog_array, index)`. Falls through with `-ENOENT` if the array has no program
//! there, or after 33 tail calls of a packet (include/linux/bpf.h `MAX_TAIL_CALL_CNT`). The emitter ends the
//! program's function with the other's result; the C function only looks the program up. In a function
//! that the program calls it stands for `tail_away`: as in the kernel, only that function is left.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 12
pub static HELPER: Helper = Helper {
    number: 12,
    name: "tail_call",
    args: &[Arg::Context, Arg::Object, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &["prog_array"],
    effects: Effects {
        state: true,
        other: true,
        ..Effects::NONE
    },
};
