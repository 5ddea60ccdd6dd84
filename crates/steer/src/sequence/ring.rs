//! Ring form: each row once in memory, for all cores.
//!
//! A place has the row's number (zero while it is written), its time in ns and whether it is a heartbeat's in one word, and its bytes as
//! 64-bit words of the host, padded with zeros. Each reader fetches each row from another processor's cache, so that a byte
//! less counts. Writers wait for no reader: one that stalls longer than the ring is long finds another number in the
//! place and has to stop.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::{Row, Shape};

/// Words of a place before the row's bytes.
const HEAD: usize = 2;
/// Bytes of a line of the caches.
const LINE: usize = 64;
/// How many rows ahead a reader fetches that reads them one by one.
const AHEAD: u64 = 8;

/// A ring of rows.
#[derive(Debug)]
pub struct Ring {
    shape: Shape,
    /// a power of two
    places: usize,
    stride: usize,
    words: Vec<AtomicU64>,
    head: Alone,
}

/// What one writes and many read, on lines of its own: what lies beside it is not fetched again with each store.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone(AtomicU64);

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

/// Why [`Ring::take`] read no further row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// the next row is so much later than the first that they are not read together, or there are as many as wanted
    Full,
    /// behind the rows comes a heartbeat of this time, ns; it has been read, too
    Beat(u64),
    /// as [`Next::Done`]
    Done,
    /// as [`Next::Ahead`]
    Ahead,
    /// as [`Next::Overrun`]
    Overrun,
}

/// Rows that were read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// how many
    pub rows: usize,
    /// time of the last one, ns; 0 without a row
    pub last: u64,
    /// what comes behind them
    pub end: End,
}

/// How many rows may be read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Most {
    /// rows
    pub rows: usize,
    /// from the first to the last, ns
    pub time: u64,
}

impl Ring {
    /// A ring of at least `places` rows, which is rounded up to a power of two.
    #[must_use]
    pub fn new(places: usize, shape: Shape) -> Self {
        let places = places.max(2).next_power_of_two();
        let stride = HEAD + shape.row_bytes().div_ceil(8);
        Self {
            shape,
            places,
            stride,
            words: (0..places * stride).map(|_| AtomicU64::new(0)).collect(),
            head: Alone::default(),
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
        self.head.0.load(Ordering::Acquire)
    }

    fn place(&self, number: u64) -> &[AtomicU64] {
        let at = (number as usize & (self.places - 1)) * self.stride;
        self.words.get(at..at + self.stride).unwrap_or(&[])
    }

    /// Puts the next row in; for the sequencer alone, or for several threads, each with
    /// rows of its own. Readers see it after [`Self::publish`].
    pub fn put(&self, row: &Row) {
        self.write((row.number, row.time, row.beat), row.bytes());
    }

    /// The same for the bytes of row `number` of a packet of this time, ns.
    pub fn put_bytes(&self, number: u64, time: u64, bytes: &[u8]) {
        self.write((number, time, false), bytes);
    }

    fn write(&self, (number, stamp, beat): (u64, u64, bool), bytes: &[u8]) {
        let [seq, time, words @ ..] = self.place(number) else {
            return;
        };
        seq.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        // Ns since 1970 have 63 bits until the year 2262.
        time.store(stamp << 1 | u64::from(beat), Ordering::Relaxed);
        let mut bytes = bytes.chunks(8);
        for word in words {
            let mut eight = [0; 8];
            let from = bytes.next().unwrap_or(&[]);
            eight.iter_mut().zip(from).for_each(|(e, b)| *e = *b);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
        seq.store(number, Ordering::Release);
    }

    /// Addresses of the lines of memory that rows `first` to `last` lie in, to move them to a cache that readers share.
    pub fn lines(&self, first: u64, last: u64) -> impl Iterator<Item = *const u8> {
        let places = (first..=last).map(|number| self.place(number));
        let lines = places.flat_map(|place| {
            let bytes = place.as_ptr_range();
            (bytes.start.addr() / LINE..bytes.end.addr().div_ceil(LINE))
                .map(move |line| bytes.start.with_addr(line * LINE).cast::<u8>())
        });
        let mut before = std::ptr::null();
        lines.filter(move |line| std::mem::replace(&mut before, *line) != *line)
    }

    /// Shows all rows up to `number`, before the descriptors of their packets are handed over.
    pub fn publish(&self, number: u64) {
        self.head.0.store(number, Ordering::Release);
    }

    /// Reads rows after `applied`, which it moves, up to `upto` and at most so many, into `bytes`, which is replaced; a
    /// heartbeat has no bytes.
    pub fn take(&self, applied: &mut u64, upto: u64, most: Most, bytes: &mut Vec<u8>) -> Taken {
        let length = self.shape.row_bytes();
        let mut taken = Taken {
            rows: 0,
            last: 0,
            end: End::Full,
        };
        let left = upto.saturating_sub(*applied);
        let head = self.head();
        if left == 0 || head < upto {
            bytes.clear();
            taken.end = if left == 0 { End::Done } else { End::Ahead };
            return taken;
        }
        // Another core has written them: all misses at once take as long as a few. Not what is about to be written.
        let many = most.rows.min(left as usize) as u64;
        let first = if many > 1 { 1 } else { AHEAD };
        for ahead in first..(first + many).min(head - *applied + 1) {
            self.fetch(applied.wrapping_add(ahead));
        }
        bytes.resize(most.rows.min(left as usize) * length, 0);
        // Rows that are not read together with the first: of another time.
        let mut until = u64::MAX;
        let mut rest = bytes.as_mut_slice();
        while taken.rows < most.rows {
            if *applied >= upto {
                taken.end = End::Done;
                break;
            }
            let number = applied.wrapping_add(1);
            let (row, behind) = rest.split_at_mut(length.min(rest.len()));
            match self.copy(number, row) {
                None => taken.end = End::Overrun,
                Some((true, time)) => {
                    *applied = number;
                    taken.end = End::Beat(time);
                }
                Some((false, time)) if time <= until => {
                    if taken.rows == 0 {
                        until = time.saturating_add(most.time);
                    }
                    *applied = number;
                    taken.rows += 1;
                    taken.last = time;
                    rest = behind;
                    continue;
                }
                Some(_) => {}
            }
            break;
        }
        bytes.truncate(taken.rows * length);
        taken
    }

    /// Asks for the lines of a place that is read soon.
    #[inline]
    fn fetch(&self, number: u64) {
        let place = self.place(number);
        for word in [place.first(), place.last()].into_iter().flatten() {
            std::hint::black_box(word.load(Ordering::Relaxed));
        }
    }

    /// Copies a row's bytes; whether it is a heartbeat, and its time. None if it is not there any more.
    #[inline]
    fn copy(&self, number: u64, bytes: &mut [u8]) -> Option<(bool, u64)> {
        let [seq, time, words @ ..] = self.place(number) else {
            return None;
        };
        let before = seq.load(Ordering::Acquire);
        let time = time.load(Ordering::Relaxed);
        let (beat, time) = (time & 1 != 0, time >> 1);
        let mut words = words
            .iter()
            .map(|w| w.load(Ordering::Relaxed).to_ne_bytes());
        let mut whole = bytes.chunks_exact_mut(8);
        for (eight, word) in whole.by_ref().zip(words.by_ref()) {
            eight.copy_from_slice(&word);
        }
        let part = whole.into_remainder();
        if let (false, Some(word)) = (part.is_empty(), words.next()) {
            part.iter_mut().zip(word).for_each(|(b, w)| *b = w);
        }
        fence(Ordering::Acquire);
        (before == number && seq.load(Ordering::Relaxed) == number).then_some((beat, time))
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
        let mut row = Row::empty(self.shape, number, 0, false);
        let Some((beat, time)) = self.copy(number, row.bytes_mut()) else {
            return Next::Overrun;
        };
        (row.beat, row.time) = (beat, time);
        *applied = number;
        Next::Given(row)
    }
}
