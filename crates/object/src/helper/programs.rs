//! Tail calls.

use super::Arg::{Context, Object, Scalar};
use super::{EXPANSION, STATUS, family, helper, within};
use crate::contract::Reach::Entry;
use crate::contract::look;

family! {
    /// `tail_call`: goes on with another program, and does not come back.
    ///
    /// `long bpf_tail_call(ctx, prog_array, index)`. Falls through with `-ENOENT` if the array has no program
    /// there, or after 33 tail calls of a packet (include/linux/bpf.h `MAX_TAIL_CALL_CNT`). The emitter ends the
    /// program's function with the other's result; the C function only looks the program up. In a function
    /// that the program calls it stands for `tail_away`: as in the kernel, only that function is left.
    TAIL_CALL =
        helper(12, "tail_call", &[Context, Object, Scalar], STATUS).does(look(Entry)).other();

    /// `tail_away`: a tail call in a function that another one calls.
    ///
    /// Expansion of `bpf_tail_call`: the function's caller goes on with what the other program
    /// gives. 0 where the call falls through; else 2^32 plus that program's verdict, which is 32 bits.
    TAIL_AWAY =
        helper(EXPANSION + 1, "tail_away", &[Context, Object, Scalar], within(0, (1 << 33) - 1))
            .does(look(Entry)).moves_packet().other();
}
