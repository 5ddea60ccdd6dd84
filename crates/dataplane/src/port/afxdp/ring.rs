//! The four rings of an AF_XDP socket: single producer, single consumer, shared with the kernel
//! (Documentation/networking/af_xdp.rst).

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::port::device::Map;

/// Where the parts of a ring lie in its mapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets {
    /// index of the next entry to be produced
    pub producer: usize,
    /// index of the next entry to be consumed
    pub consumer: usize,
    /// the entries
    pub entries: usize,
    /// what the kernel asks for
    pub flags: usize,
}

impl From<libc::xdp_ring_offset> for Offsets {
    fn from(o: libc::xdp_ring_offset) -> Self {
        Self {
            producer: o.producer as usize,
            consumer: o.consumer as usize,
            entries: o.desc as usize,
            flags: o.flags as usize,
        }
    }
}

/// A ring of entries of type `T`. Which side we are is up to the caller: either it only reserves and
/// submits, or it only peeks and consumes.
pub struct Ring<T> {
    map: Map,
    offsets: Offsets,
    size: u32,
    /// our own index: of the next entry that we produce or consume
    own: u32,
    /// the other side's index when it was last looked at
    other: u32,
    entries: std::marker::PhantomData<fn(T)>,
}

impl<T: Copy> Ring<T> {
    /// Maps a ring of `size` entries (a power of two) that lies at `page` of the socket.
    ///
    /// # Errors
    /// The system's.
    pub fn map(fd: i32, size: u32, offsets: Offsets, page: i64) -> io::Result<Self> {
        let length = offsets.entries + size as usize * size_of::<T>();
        Ok(Self {
            map: Map::shared(fd, length, page)?,
            offsets,
            size,
            own: 0,
            other: 0,
            entries: std::marker::PhantomData,
        })
    }

    fn place(&self, index: u32) -> usize {
        self.offsets.entries + (index & (self.size - 1)) as usize * size_of::<T>()
    }

    fn word(&self, offset: usize) -> Option<&AtomicU32> {
        self.map.word(offset)
    }

    /// As a producer: whether there is room for an entry.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if self.own.wrapping_sub(self.other) < self.size {
            return true;
        }
        self.other = self.map.load(self.offsets.consumer);
        self.own.wrapping_sub(self.other) < self.size
    }

    /// As a producer: writes an entry; false when there is no room. The kernel sees it after
    /// [`Ring::submit`].
    #[inline]
    pub fn put(&mut self, entry: T) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(to) = self.map.at(self.place(self.own), size_of::<T>()) else {
            return false;
        };
        // SAFETY: within the mapping, and the place is the producer's until it is submitted; entries
        // are structs of integers.
        unsafe { to.cast::<T>().write_unaligned(entry) };
        self.own = self.own.wrapping_add(1);
        true
    }

    /// As a producer: hands over what was put.
    #[inline]
    pub fn submit(&self) {
        self.map.store(self.offsets.producer, self.own);
    }

    /// As a producer: entries that were submitted and not yet consumed.
    pub fn outstanding(&mut self) -> u32 {
        self.other = self.map.load(self.offsets.consumer);
        self.own.wrapping_sub(self.other)
    }

    /// As a consumer: the next entry, which is the producer's again after [`Ring::done`].
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        if self.own == self.other {
            self.other = self.map.load(self.offsets.producer);
            if self.own == self.other {
                return None;
            }
        }
        let entry = self.map.read(self.place(self.own))?;
        self.own = self.own.wrapping_add(1);
        Some(entry)
    }

    /// As a consumer: gives back what was taken.
    #[inline]
    pub fn done(&self) {
        self.map.store(self.offsets.consumer, self.own);
    }

    /// Whether the kernel asks to be woken (XDP_RING_NEED_WAKEUP).
    #[inline]
    pub fn wants_wakeup(&self) -> bool {
        let flags = self.word(self.offsets.flags);
        flags.is_some_and(|f| f.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0)
    }
}
