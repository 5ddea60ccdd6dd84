//! Locks in the values of maps.

use super::Arg::Out;
use super::{family, helper, within};
use crate::contract::Reach::Entry;
use crate::contract::touch;

family! {
    /// `spin_lock`: takes a lock in a map's value.
    ///
    /// `long bpf_spin_lock(struct bpf_spin_lock *)`. One thread owns an instance in treatment `alone`, so nothing
    /// has to be waited for; the lock is left as it is, and 0 returned. `check` sees to it that a lock is given
    /// back on every way, and that nothing is called meanwhile.
    SPIN_LOCK = helper(93, "spin_lock", &[Out(4)], within(0, 0)).does(touch(Entry));

    /// `spin_unlock`: gives back a lock in a map's value.
    ///
    /// `long bpf_spin_unlock(struct bpf_spin_lock *)`. One thread owns an instance in treatment `alone`, so nothing
    /// has to be waited for; the lock is left as it is, and 0 returned. `check` sees to it that a lock is given
    /// back on every way, and that nothing is called meanwhile.
    SPIN_UNLOCK = helper(94, "spin_unlock", &[Out(4)], within(0, 0)).does(touch(Entry));
}
