//! Packet memory: the buffers that a queue's rings point to.

use std::ptr::NonNull;

use crate::packet::SLOT;

/// Pages of this size keep the buffers of a queue within reach of the translation buffers, where the
/// system gives them without being set up for it.
const HUGE: usize = 2 << 20;

/// A mapping of buffers of [`SLOT`] bytes each, touched, aligned to a large page.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    start: NonNull<u8>,
    length: usize,
    count: usize,
}

// SAFETY: a mapping has no thread of its own. Who may use which buffer is settled by the rings: a
// buffer is the device's from the doorbell to the write-back, and the driver's otherwise.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `count` buffers.
    ///
    /// # Errors
    /// What the system says when there is not so much memory.
    pub fn new(count: usize) -> std::io::Result<Self> {
        let bytes = count.saturating_mul(SLOT);
        let length = bytes.saturating_add(HUGE);
        // SAFETY: a new private mapping at an address of the system's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let base = base.cast::<u8>();
        let start = base.wrapping_add(base.align_offset(HUGE));
        let (Some(base), Some(start)) = (NonNull::new(base), NonNull::new(start)) else {
            return Err(std::io::Error::other("the system mapped address 0"));
        };
        // SAFETY: within the mapping made above, which is one large page longer than the buffers, so
        // they fit behind the alignment. The advice may be refused, and then pages are small. Every
        // page is written once, so that none has to be found while packets come.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            std::ptr::write_bytes(start.as_ptr(), 0, bytes);
        }
        Ok(Self {
            base,
            start,
            length,
            count,
        })
    }

    /// The first byte of a buffer; none when there is no such buffer.
    #[inline]
    #[must_use]
    pub fn buffer(&self, index: u32) -> Option<*mut u8> {
        let index = index as usize;
        (index < self.count).then(|| self.start.as_ptr().wrapping_add(index * SLOT))
    }

    /// The buffer that an address lies in; none when it lies in none.
    #[inline]
    #[must_use]
    pub fn index(&self, address: usize) -> Option<usize> {
        let index = address.checked_sub(self.start.as_ptr().addr())? / SLOT;
        (index < self.count).then_some(index)
    }

    /// How many buffers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes that are resident.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.count * SLOT) as u64
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; whoever uses buffers holds this object.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Asks for a cache line; any address will do.
#[inline]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, and the instruction exists on every x86-64 processor.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
