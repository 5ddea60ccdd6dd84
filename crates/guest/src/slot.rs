//! Where guests live: slots of address space at fixed addresses.
//!
//! A slot's number gives its address, in every process of a network, so that a guest's pointers stay right
//! when it is moved. The stride is no power of two: slots a power of two apart put the same page of every
//! guest (its stack, its libc) into the same set of the caches and of the TLB.
//!
//! A slot is reserved whole, without access, together with the gap behind it. The kernel copies upwards, so a
//! buffer that begins in a slot cannot make it write beyond: it stops at the gap.
//!
//! A program that is linked to fixed addresses (no PIE) is mapped where it was linked to, [`FIXED`]; everything else of
//! it (loader, libraries, heap, stacks) lies in its slot. One guest of a process at a time has these addresses.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::GuestError;

/// Address of slot 0.
pub const BASE: usize = 0x1000_0000_0000;
/// Bytes of a slot that a guest may use.
pub const SIZE: usize = 0x2_0000_0000;
/// Bytes from a slot to the next.
pub const STRIDE: usize = 0x2_0001_3000;
/// No slot reaches beyond this address.
pub const END: usize = 0x5000_0000_0000;
/// Addresses that programs are linked to which are not position independent: linkers for x86-64 begin at 4 MiB.
pub const FIXED: Range<usize> = 0x40_0000..0x1000_0000;
/// Bytes without access behind them.
const FIXED_GAP: usize = STRIDE - SIZE;
/// How many slots there are.
pub const SLOTS: u32 = ((END - BASE) / STRIDE) as u32;
/// The granule of all mappings, bytes.
pub const PAGE: usize = 4096;

/// Numbers that are taken in this process.
static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// The slot whose guest has [`FIXED`].
static FIXED_OF: AtomicU32 = AtomicU32::new(NOBODY);
const NOBODY: u32 = u32::MAX;

/// Whether guests can have [`FIXED`]: the code of this process lies elsewhere, so that the filter can tell a guest's
/// system calls from its own.
#[must_use]
pub fn fixed_is_free() -> bool {
    fixed_is_free as *const () as usize >> 32 != 0
}

/// A reserved slot; given back, with all that is mapped in it, when dropped.
#[derive(Debug)]
pub struct Slot {
    number: u32,
    released: AtomicBool,
    fixed: AtomicBool,
}

impl Slot {
    /// Reserves slot `number`, or the lowest that is free.
    ///
    /// # Errors
    /// [`GuestError::Slot`] when the number is out of range or taken, or its addresses are in use.
    pub fn reserve(number: Option<u32>) -> Result<Self, GuestError> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let free = || (0..SLOTS).find(|n| !taken.contains(n));
        let number = match number {
            Some(n) if n < SLOTS && !taken.contains(&n) => n,
            Some(n) => {
                return Err(GuestError::Slot(
                    n,
                    "it is taken, or there is no such slot".into(),
                ));
            }
            None => free().ok_or_else(|| GuestError::Slot(SLOTS, "all slots are taken".into()))?,
        };
        // There is no slot before there are its addresses: one that is dropped gives them back.
        close(&range(number), STRIDE, libc::MAP_FIXED_NOREPLACE).map_err(|e| match e.kind() {
            ErrorKind::OutOfMemory => GuestError::Addresses(number, e),
            _ => GuestError::Slot(number, e.to_string()),
        })?;
        taken.insert(number);
        Ok(Self {
            number,
            released: AtomicBool::new(false),
            fixed: AtomicBool::new(false),
        })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The addresses that the guest may use; it may have [`FIXED`], too.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        range(self.number)
    }

    /// Gives [`FIXED`] to this slot's guest.
    ///
    /// # Errors
    /// Why it cannot have them.
    pub fn take_fixed(&self) -> Result<Range<usize>, String> {
        if !fixed_is_free() {
            return Err("this program's own code lies there".into());
        }
        let taken =
            FIXED_OF.compare_exchange(NOBODY, self.number, Ordering::AcqRel, Ordering::Acquire);
        if let Err(other) = taken {
            return Err(format!("the guest in slot {other} has them"));
        }
        let reserved = close(&FIXED, FIXED.len() + FIXED_GAP, libc::MAP_FIXED_NOREPLACE);
        if let Err(error) = reserved {
            FIXED_OF.store(NOBODY, Ordering::Release);
            return Err(format!("they cannot be reserved: {error}"));
        }
        self.fixed.store(true, Ordering::Release);
        Ok(FIXED)
    }

    /// Whether its guest has [`FIXED`].
    #[must_use]
    pub fn has_fixed(&self) -> bool {
        self.fixed.load(Ordering::Acquire)
    }

    /// Whether an address is its guest's.
    #[must_use]
    pub fn contains(&self, address: usize) -> bool {
        self.range().contains(&address) || FIXED.contains(&address) && self.has_fixed()
    }
}

impl Slot {
    /// Gives it back before it is dropped, with all that is mapped in it. Whoever does that has seen its guest end.
    pub fn release(&self) {
        if self.released.swap(true, Ordering::AcqRel) {
            return;
        }
        let base = self.range().start;
        // SAFETY: the range is this slot's own, and nothing runs in it any more.
        unsafe { libc::munmap(base as *mut libc::c_void, STRIDE) };
        if self.fixed.swap(false, Ordering::AcqRel) {
            // SAFETY: as above.
            unsafe { libc::munmap(FIXED.start as *mut libc::c_void, FIXED.len() + FIXED_GAP) };
            FIXED_OF.store(NOBODY, Ordering::Release);
        }
        TAKEN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.number);
    }
}

/// The addresses of a slot.
fn range(number: u32) -> Range<usize> {
    let base = BASE + number as usize * STRIDE;
    base..base + SIZE
}

/// Maps a slot and the gap behind it, together `length` bytes, without access.
fn close(slot: &Range<usize>, length: usize, how: i32) -> std::io::Result<()> {
    let base = slot.start;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | how;
    // SAFETY: with MAP_FIXED_NOREPLACE nothing that is mapped is touched; with MAP_FIXED (on drop) the
    // range is this slot's own, and its guest has ended.
    let at = unsafe {
        libc::mmap(
            base as *mut libc::c_void,
            length,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    if at.addr() != base {
        // A kernel before 4.17 takes the address for a wish.
        // SAFETY: unmaps what the call above has mapped.
        unsafe { libc::munmap(at, length) };
        return Err(std::io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(())
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.release();
    }
}

/// Whether an address lies where guests live.
#[must_use]
pub fn is_guest(address: usize) -> bool {
    (BASE..END).contains(&address) || FIXED.contains(&address) && fixed_is_free()
}

/// The slot that an address lies in.
#[must_use]
pub fn number_at(address: usize) -> Option<u32> {
    if FIXED.contains(&address) {
        let number = FIXED_OF.load(Ordering::Acquire);
        return (number != NOBODY).then_some(number);
    }
    let into = address.checked_sub(BASE)? / STRIDE;
    (into < SLOTS as usize).then_some(into as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_one_guests_and_comes_back() {
        let slot = Slot::reserve(Some(4000)).unwrap();
        assert_eq!(slot.range().start, BASE + 4000 * STRIDE);
        assert!(Slot::reserve(Some(4000)).is_err());
        drop(slot);
        assert!(Slot::reserve(Some(4000)).is_ok());
        assert!(Slot::reserve(Some(SLOTS)).is_err());
    }

    #[test]
    fn fixed_addresses_are_one_guests_and_come_back() {
        let (first, second) = (
            Slot::reserve(Some(4001)).unwrap(),
            Slot::reserve(Some(4002)).unwrap(),
        );
        assert!(!first.contains(FIXED.start));
        assert_eq!(first.take_fixed().unwrap(), FIXED);
        assert!(
            first.contains(FIXED.start)
                && !first.contains(FIXED.end)
                && !second.contains(FIXED.start)
        );
        assert_eq!(number_at(FIXED.end - 1), Some(4001));
        assert!(second.take_fixed().unwrap_err().contains("slot 4001"));
        drop(first);
        assert_eq!(number_at(FIXED.start), None);
        assert!(second.take_fixed().is_ok());
    }

    #[test]
    fn no_two_slots_share_a_set() {
        // 4096 sets of 64 bytes: the largest cache that is indexed by address alone in common processors.
        assert_ne!(STRIDE % (4096 * 64), 0);
        assert!(BASE + SLOTS as usize * STRIDE <= END);
    }
}
