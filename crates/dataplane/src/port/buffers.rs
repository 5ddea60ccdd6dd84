//! Buffers for ports that copy what they receive: frames with room before and behind them.

use super::{Frame, Pool};
use crate::packet::{Layout, Slot, copy};

/// A set of buffers of which each is either free or lent.
///
/// A buffer is a heap allocation of its own that is only touched here while it is free, so a lent
/// frame's memory stays in place until it is taken back.
pub struct Buffers {
    slots: Vec<Slot>,
    free: Vec<u32>,
    pool: Pool,
    layout: Layout,
    port: u32,
}

impl Buffers {
    /// `count` buffers for packets of ordinary size, their memory touched, for frames that enter at
    /// `port`.
    #[must_use]
    pub fn new(count: usize, port: u32, layout: Layout) -> Self {
        Self {
            slots: (0..count).map(|_| Slot::new(layout, 0)).collect(),
            // The buffer used last is the warmest: the list is taken from its end.
            free: (0..count as u32).rev().collect(),
            pool: Pool::fresh(),
            layout,
            port,
        }
    }

    /// How many may be lent now.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// The memory of these buffers.
    #[must_use]
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// Lends a buffer with `length` bytes that `fill` writes. None when all are lent, when `length` is
    /// more than [`MAX_FRAME`](crate::packet::MAX_FRAME), or when `fill` gives none; otherwise it gives the bytes written.
    pub fn lend(
        &mut self,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<Frame> {
        let buffer = *self.free.last()?;
        let slot = self.slots.get_mut(buffer as usize)?;
        let written = fill(slot.place(self.layout, length)?)?.min(length);
        self.free.pop();
        Some(slot.frame(written, self.port, self.pool, u64::from(buffer)))
    }

    /// Lends a copy of a packet.
    #[inline]
    pub fn copy(&mut self, frame: &[u8]) -> Option<Frame> {
        self.lend(frame.len(), |place| {
            copy(place, frame);
            Some(frame.len())
        })
    }

    /// Takes frames back.
    pub fn release(&mut self, frames: &[Frame]) {
        let back = frames.iter().map(|f| f.buffer as u32);
        self.free.extend(back);
    }

    /// Bytes that the buffers keep resident.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.slots.iter().map(|s| s.memory() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{MAX_FRAME, TAILROOM};

    #[test]
    fn a_buffer_is_lent_once_and_comes_back() {
        let mut buffers = Buffers::new(2, 3, Layout::Pooled);
        let a = buffers.copy(&[1, 2, 3]).unwrap();
        let b = buffers.copy(&[4; 9000]).unwrap();
        assert!(buffers.copy(&[5]).is_none());
        assert_ne!(a.buffer, b.buffer);
        assert_eq!((a.port, b.end.addr() - b.data.addr()), (3, 9000));
        assert!(b.ceiling.addr() - b.end.addr() >= TAILROOM);
        buffers.release(&[a]);
        assert_eq!(buffers.free(), 1);
        assert!(buffers.copy(&[0; MAX_FRAME + 1]).is_none());
        assert!(buffers.lend(10, |_| None).is_none());
        assert_eq!(buffers.free(), 1);
    }
}
