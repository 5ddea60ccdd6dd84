//! Buffers for ports that copy what they receive: frames with room before and behind them.

use super::{Frame, Pool};
use crate::packet::{HEADROOM, Layout, MAX_FRAME, SLOT, TAILROOM};

/// A set of buffers of which each is either free or lent.
///
/// A buffer is a heap allocation of its own that is only touched here while it is free, so a lent
/// frame's memory stays in place until it is taken back.
pub struct Buffers {
    slots: Vec<Vec<u8>>,
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
        let slot = || {
            let mut memory = Vec::new();
            if layout == Layout::Pooled {
                // Not `vec![0; n]`, whose pages need not be resident before the first packet.
                memory.reserve_exact(SLOT);
                memory.resize(SLOT, 0);
            }
            memory
        };
        Self {
            slots: (0..count).map(|_| slot()).collect(),
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
    /// more than [`MAX_FRAME`], or when `fill` gives none; otherwise it gives the bytes written.
    pub fn lend(
        &mut self,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<Frame> {
        if length > MAX_FRAME {
            return None;
        }
        let buffer = *self.free.last()?;
        let memory = self.slots.get_mut(buffer as usize)?;
        match self.layout {
            // The allocation ends where the packet ends, so that AddressSanitizer sees a read past it.
            Layout::Exact => {
                *memory = vec![0; HEADROOM + length];
            }
            Layout::Pooled => {
                let need = HEADROOM + length + TAILROOM;
                if memory.len() < need {
                    memory.resize(need, 0);
                }
                // What an earlier packet left in the headroom must not show in this one.
                memory.get_mut(..HEADROOM)?.fill(0);
            }
        }
        let written = fill(memory.get_mut(HEADROOM..HEADROOM + length)?)?.min(length);
        self.free.pop();
        let range = memory.as_mut_ptr_range();
        let data = range.start.wrapping_add(HEADROOM);
        Some(Frame {
            data,
            end: data.wrapping_add(written),
            floor: range.start,
            ceiling: range.end,
            stamp: 0,
            wire: written as u32,
            port: self.port,
            class: 0,
            pool: self.pool,
            buffer: u64::from(buffer),
        })
    }

    /// Lends a copy of a packet.
    pub fn copy(&mut self, frame: &[u8]) -> Option<Frame> {
        self.lend(frame.len(), |place| {
            place.copy_from_slice(frame);
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
        self.slots.iter().map(|s| s.capacity() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
