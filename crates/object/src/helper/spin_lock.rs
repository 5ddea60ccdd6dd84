//! `spin_lock`: takes a lock in a map's value.
//!
//! `long bpf_spin_lock(struct bpf_spin_lock *)`. One thread owns an instance in treatment `alone`, so nothing
//! has to be waited for; the lock is left as it is, and 0 returned. `check` sees to it that a lock is given
//! back on every way, and that nothing is called meanwhile.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 93
pub static HELPER: Helper = Helper {
    number: 93,
    name: "spin_lock",
    args: &[Arg::Out(4)],
    returns: Return::Scalar { min: 0, max: 0 },
    kinds: &[],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
