//! A window over a stream: as many contiguous bytes as a decoder asks for, without copying what is
//! already there.

use std::io::{self, Read};

/// The window. Four times the largest packet, so that moving the rest of a packet to the front is rare.
const CAPACITY: usize = 4 * super::MAX_PACKET;

pub(super) struct Source {
    read: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    offset: u64,
    ended: bool,
    /// what [`Source::skip`] has still to step over
    owed: u64,
}

impl Source {
    pub(super) fn new(read: Box<dyn Read + Send>) -> Self {
        Self {
            read,
            buffer: vec![0; CAPACITY].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            owed: 0,
        }
    }

    /// Where in the stream [`Source::bytes`] begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// What is in the window.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    /// Makes at least `wanted` bytes available, fewer only where the stream ends; says how many there
    /// are now. `wanted` above the window's size counts as that size.
    #[inline]
    pub(super) fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        if self.end - self.start >= wanted {
            return Ok(self.end - self.start);
        }
        self.fill_more(wanted.min(CAPACITY))
    }

    #[cold]
    fn fill_more(&mut self, wanted: usize) -> io::Result<usize> {
        if self.start + wanted > CAPACITY {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < wanted && !self.ended {
            let Some(room) = self.buffer.get_mut(self.end..) else {
                break;
            };
            match self.read.read(room) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n.min(room.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end - self.start)
    }

    /// Steps over `length` bytes of the window.
    #[inline]
    pub(super) fn consume(&mut self, length: usize) {
        let length = length.min(self.end - self.start);
        self.start += length;
        self.offset += length as u64;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Steps over `length` bytes of the stream, more than the window may hold; says how many are
    /// missing at its end. After an error the rest is still owed: [`Source::pay`] goes on.
    pub(super) fn skip(&mut self, length: u64) -> io::Result<u64> {
        self.owed = length;
        self.pay()
    }

    /// Steps over what is still owed.
    pub(super) fn pay(&mut self) -> io::Result<u64> {
        while self.owed > 0 {
            let there = self.fill(1)?;
            if there == 0 {
                break;
            }
            let step = there.min(usize::try_from(self.owed).unwrap_or(usize::MAX));
            self.consume(step);
            self.owed -= step as u64;
        }
        Ok(self.owed)
    }
}
