//! Ring form: each row once in memory, for all cores.
//!
//! The places lie in memory as `struct history_row` of fastpath/sync/history.h does, so that emitted code can read them: the
//! row's number (zero while it is written), 1 for a row and 2 for a heartbeat's, its time in ns, and its bytes as 64-bit words
//! of the host, padded with zeros to 8, 16, 32 or 64 bytes. There is one writer, and it waits for no reader: one that stalls
//! longer than the ring is long finds another number in the place and has to stop.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::{Row, Shape};

/// Words of a place before the row's bytes.
const HEAD: usize = 3;

/// A ring of rows.
#[derive(Debug)]
pub struct Ring {
    shape: Shape,
    places: usize,
    stride: usize,
    head: AtomicU64,
    words: Vec<AtomicU64>,
}

/// What a reader finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// a row, or a heartbeat
    Given(Row),
    /// all rows up to the one that was asked for have been read
    Done,
    /// the ring does not have the row that was asked for: a descriptor came before its row, or is wrong
    Ahead,
    /// the row has been overwritten: this reader is too far behind and cannot go on
    Overrun,
}

/// What a reader finds that wants a row's bytes behind those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// a row of a packet of this time, ns
    Row(u64),
    /// a heartbeat of this time, ns
    Beat(u64),
    /// as [`Next::Done`]
    Done,
    /// as [`Next::Ahead`]
    Ahead,
    /// as [`Next::Overrun`]
    Overrun,
}

impl Ring {
    /// A ring of at least `places` rows, which is rounded up to a power of two.
    #[must_use]
    pub fn new(places: usize, shape: Shape) -> Self {
        let places = places.max(2).next_power_of_two();
        let stride = HEAD + shape.row_bytes().next_power_of_two().max(8) / 8;
        Self {
            shape,
            places,
            stride,
            head: AtomicU64::new(0),
            words: (0..places * stride).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Rows that it holds.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places
    }

    /// Bytes of a place.
    #[must_use]
    pub fn place_bytes(&self) -> usize {
        self.stride * 8
    }

    /// The number of the newest row that readers can see.
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    fn place(&self, number: u64) -> &[AtomicU64] {
        let at = (number % self.places as u64) as usize * self.stride;
        self.words.get(at..at + self.stride).unwrap_or(&[])
    }

    /// Puts the next row in; for the sequencer alone. Readers see it after [`Self::publish`].
    pub fn put(&self, row: &Row) {
        let [seq, kind, time, words @ ..] = self.place(row.number) else {
            return;
        };
        seq.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        kind.store(1 + u64::from(row.beat), Ordering::Relaxed);
        time.store(row.time, Ordering::Relaxed);
        let mut bytes = row.bytes().chunks(8);
        for word in words {
            let mut eight = [0; 8];
            let from = bytes.next().unwrap_or(&[]);
            eight.iter_mut().zip(from).for_each(|(e, b)| *e = *b);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
        seq.store(row.number, Ordering::Release);
    }

    /// Shows all rows up to `number`, before the descriptors of their packets are handed over.
    pub fn publish(&self, number: u64) {
        self.head.store(number, Ordering::Release);
    }

    /// Reads the row after `applied`, which it moves, if that is not behind row `upto`, and appends its bytes to `bytes`; a
    /// heartbeat has none.
    pub fn read(&self, applied: &mut u64, upto: u64, bytes: &mut Vec<u8>) -> Read {
        let number = applied.wrapping_add(1);
        if *applied >= upto {
            return Read::Done;
        }
        if self.head() < upto {
            return Read::Ahead;
        }
        let [seq, kind, time, words @ ..] = self.place(number) else {
            return Read::Overrun;
        };
        let before = seq.load(Ordering::Acquire);
        let (beat, time) = (
            kind.load(Ordering::Relaxed) == 2,
            time.load(Ordering::Relaxed),
        );
        let at = bytes.len();
        for word in words {
            bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        fence(Ordering::Acquire);
        let whole = before == number && seq.load(Ordering::Relaxed) == number;
        let own = if beat || !whole {
            0
        } else {
            self.shape.row_bytes()
        };
        bytes.truncate(at + own);
        if !whole {
            return Read::Overrun;
        }
        *applied = number;
        match beat {
            true => Read::Beat(time),
            false => Read::Row(time),
        }
    }

    /// Reads the row after `applied`, which it moves, if that is not behind row `upto`.
    pub fn next(&self, applied: &mut u64, upto: u64) -> Next {
        let number = applied.wrapping_add(1);
        if *applied >= upto {
            return Next::Done;
        }
        if self.head() < upto {
            return Next::Ahead;
        }
        let [seq, kind, time, words @ ..] = self.place(number) else {
            return Next::Overrun;
        };
        let before = seq.load(Ordering::Acquire);
        let beat = kind.load(Ordering::Relaxed) == 2;
        let mut row = Row::empty(self.shape, number, time.load(Ordering::Relaxed), beat);
        for (bytes, word) in row.bytes_mut().chunks_mut(8).zip(words) {
            let eight = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes.iter_mut().zip(eight).for_each(|(b, e)| *b = e);
        }
        fence(Ordering::Acquire);
        if before != number || seq.load(Ordering::Relaxed) != number {
            return Next::Overrun;
        }
        *applied = number;
        Next::Given(row)
    }
}
