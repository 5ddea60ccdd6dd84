//! Memory shared with the kernel.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapping that unmaps itself. Both sides write it, so it is read and written through addresses.
pub struct Map {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: an address and its length; whoever holds the Map decides who uses the memory.
unsafe impl Send for Map {}

impl Map {
    /// Maps `length` bytes of a descriptor from `offset`, readable and writable, shared and resident.
    ///
    /// # Errors
    /// The system's.
    pub fn shared(fd: RawFd, length: usize, offset: i64) -> io::Result<Self> {
        Self::make(fd, length, offset, libc::MAP_SHARED | libc::MAP_POPULATE)
    }

    /// Maps `length` bytes of zeros, resident.
    ///
    /// # Errors
    /// The system's.
    pub fn zeros(length: usize) -> io::Result<Self> {
        Self::make(
            -1,
            length,
            0,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        )
    }

    fn make(fd: RawFd, length: usize, offset: i64, flags: i32) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, length })
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// The address of byte `offset`; none when `bytes` from there are not within the mapping.
    #[inline]
    pub fn at(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        (offset.checked_add(bytes)? <= self.length).then(|| self.base.as_ptr().wrapping_add(offset))
    }

    /// The address of byte 0.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Reads a C struct of integers; none outside the mapping.
    #[inline]
    pub fn read<T: Copy>(&self, offset: usize) -> Option<T> {
        let from = self.at(offset, size_of::<T>())?;
        // SAFETY: within the mapping. The kernel may write at the same time where it owns the place;
        // callers read structs of integers that a status word has handed to them.
        Some(unsafe { from.cast::<T>().read_unaligned() })
    }

    /// A word that both sides use to hand something over.
    #[inline]
    pub fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let at = self.at(offset, size_of::<u32>())?;
        if !at.addr().is_multiple_of(align_of::<u32>()) {
            return None;
        }
        // SAFETY: within the mapping, aligned, and lives as long as it; shared words are only used as
        // atomics on this side.
        Some(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// Loads a word, seeing everything that was written before it was set.
    #[inline]
    pub fn load(&self, offset: usize) -> u32 {
        self.word(offset).map_or(0, |w| w.load(Ordering::Acquire))
    }

    /// Stores a word after everything written before.
    #[inline]
    pub fn store(&self, offset: usize, value: u32) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::Release);
        }
    }

    /// Lends bytes; none outside the mapping.
    ///
    /// # Safety
    /// Nobody writes them while the slice lives.
    #[inline]
    pub unsafe fn bytes(&self, offset: usize, length: usize) -> Option<&[u8]> {
        let from = self.at(offset, length)?;
        // SAFETY: within the mapping; the rest as the caller promises.
        Some(unsafe { std::slice::from_raw_parts(from, length) })
    }

    /// Copies bytes in; false, and nothing copied, outside the mapping. The place must be this side's.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.at(offset, bytes.len()) else {
            return false;
        };
        // SAFETY: within the mapping, which no slice of ours overlaps.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        true
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped by `make` with this length, and nobody uses it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}
