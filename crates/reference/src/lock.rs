//! Resources that must be released: locks, records, iterators.

use millrace_object::helper::{SPIN_LOCK, SPIN_UNLOCK};

use super::{Machine, Violation, violation};

impl Machine<'_> {
    /// Takes or gives back a lock, and sees to it that nothing else is called meanwhile.
    pub(super) fn mind_the_lock(
        &mut self,
        helper: u32,
        argument: Option<u64>,
    ) -> Result<(), Violation> {
        if helper == SPIN_UNLOCK.number {
            return match self.lock.take() {
                Some(held) if Some(held) == argument => Ok(()),
                _ => violation("a lock is given back that is not held"),
            };
        }
        if self.lock.is_some() {
            return violation("a call while a lock is held");
        }
        if helper == SPIN_LOCK.number {
            self.lock = argument;
        }
        Ok(())
    }

    /// Checks that a program that ends has given everything back.
    pub(super) fn nothing_held(&self) -> Result<(), Violation> {
        if !self.records.is_empty() {
            return violation("ended with a record held");
        }
        if self.lock.is_some() {
            return violation("ended with a lock held");
        }
        if !self.iterators.is_empty() {
            return violation("ended with an iterator that has begun");
        }
        Ok(())
    }
}
