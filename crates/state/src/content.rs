//! The content of one state object, in pieces.

use crate::bytes::{Malformed, Reader, put};

/// The most bytes of a piece of [`What::Bytes`].
const MOST_BYTES: u64 = 4096;

/// What a piece is: `enum mr_saved_what`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// the first piece: it empties the object
    Head = 0,
    /// one entry
    Entry = 1,
    /// places that are free
    Free = 2,
    /// bytes of the object's memory
    Bytes = 3,
    /// the last piece
    End = 4,
}

impl What {
    const ALL: [Self; 5] = [Self::Head, Self::Entry, Self::Free, Self::Bytes, Self::End];

    /// By its number in `abi.h`.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

/// One piece of an object: `struct mr_saved`, where each number is described. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// what it is
    pub what: What,
    /// of an entry: the function of its timer
    pub callback: u32,
    /// where it belongs
    pub place: u64,
    /// an entry's last refresh, or since when a place is free
    pub stamp: u64,
    /// by when an entry is looked at again
    pub bound: u64,
    /// when an entry's timer fires
    pub due: u64,
    /// which of the timers that were started it is
    pub order: u64,
    /// places, or bytes
    pub length: u64,
    /// of an entry, where it has one
    pub key: &'a [u8],
    /// of an entry, or bytes
    pub value: &'a [u8],
}

impl Piece<'_> {
    /// A piece without anything.
    #[must_use]
    pub fn new(what: What) -> Self {
        Self {
            what,
            callback: 0,
            place: 0,
            stamp: 0,
            bound: 0,
            due: 0,
            order: 0,
            length: 0,
            key: &[],
            value: &[],
        }
    }

    /// The same with all times earlier by so much; 0 and what never comes stay.
    #[must_use]
    pub fn earlier(mut self, by: u64) -> Self {
        if by > 0 && matches!(self.what, What::Entry | What::Free) {
            self.stamp = self.stamp.saturating_sub(by);
            if self.bound > 0 {
                self.bound = self.bound.saturating_sub(by).max(1);
            }
            if self.due != u64::MAX {
                self.due = self.due.saturating_sub(by);
            }
        }
        self
    }
}

/// Sizes of an object's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// bytes of a key
    pub key_bytes: usize,
    /// bytes of a value
    pub value_bytes: usize,
}

/// The content of one object, its pieces one after the other in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    bytes: Vec<u8>,
    pieces: u64,
}

/// Has a key.
const KEY: u8 = 0x80;
/// The bits of what a piece is.
const WHAT: u8 = 7;

impl Content {
    /// Appends a piece.
    pub fn push(&mut self, piece: &Piece<'_>) {
        let key = if piece.key.is_empty() { 0 } else { KEY };
        self.bytes.push(piece.what as u8 | key);
        put(&mut self.bytes, u64::from(piece.callback));
        // What never comes is 0, and all others one more.
        let due = piece.due.wrapping_add(1);
        let numbers = [
            piece.place,
            piece.stamp,
            piece.bound,
            due,
            piece.order,
            piece.length,
        ];
        let present = numbers.iter().enumerate();
        let present = present.fold(0, |bits, (i, n)| bits | u8::from(*n != 0) << i);
        self.bytes.push(present);
        for number in numbers.iter().filter(|n| **n != 0) {
            put(&mut self.bytes, *number);
        }
        self.bytes.extend_from_slice(piece.key);
        self.bytes.extend_from_slice(piece.value);
        self.pieces += 1;
    }

    /// As it is in a file, where nothing of it is believed yet.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes, pieces: 0 }
    }

    /// As it is in a file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The pieces, of an object of this form: a head, what is in the object with places of entries that ascend, an end.
    #[must_use]
    pub fn pieces(&self, form: Form) -> Pieces<'_> {
        Pieces {
            reader: Reader::new(&self.bytes),
            form,
            begun: false,
            ended: false,
            next: 0,
        }
    }

    /// How many entries there are; none where the pieces are malformed.
    #[must_use]
    pub fn entries(&self, form: Form) -> Option<u64> {
        let mut count = 0;
        for piece in self.pieces(form) {
            count += u64::from(piece.ok()?.what == What::Entry);
        }
        Some(count)
    }
}

/// Pieces of an object as they are read; ends behind the first that is malformed.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    reader: Reader<'a>,
    form: Form,
    begun: bool,
    ended: bool,
    /// the least place of the next entry
    next: u64,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<Piece<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let piece = self.piece();
        self.ended = !matches!(&piece, Ok(piece) if piece.what != What::End);
        Some(piece)
    }
}

impl<'a> Pieces<'a> {
    fn piece(&mut self) -> Result<Piece<'a>, Malformed> {
        let reader = &mut self.reader;
        let first = reader.byte()?;
        let what = What::of(u32::from(first & WHAT)).filter(|_| first & !(WHAT | KEY) == 0);
        let what = what.ok_or_else(|| reader.wrong("a piece of no known kind"))?;
        if (what == What::Head) == self.begun {
            return Err(reader.wrong("a head that is not the first piece, or another one that is"));
        }
        self.begun = true;
        let callback = u32::try_from(reader.number()?);
        let callback = callback.map_err(|_| reader.wrong("a function of no number"))?;
        let present = reader.byte()?;
        if present >> 6 != 0 {
            return Err(reader.wrong("a number that is not known"));
        }
        let mut numbers = [0; 6];
        for (i, number) in numbers.iter_mut().enumerate() {
            if present >> i & 1 == 1 {
                *number = reader.number()?;
            }
        }
        let [place, stamp, bound, due, order, length] = numbers;
        let key = match first & KEY {
            0 => &[][..],
            _ if what != What::Entry => return Err(reader.wrong("a key of no entry")),
            _ => reader.take(self.form.key_bytes)?,
        };
        let value = match what {
            What::Entry if length == self.form.value_bytes as u64 => {
                reader.take(self.form.value_bytes)?
            }
            What::Bytes if length <= MOST_BYTES => reader.take(length as usize)?,
            What::Entry | What::Bytes => return Err(reader.wrong("a value of another size")),
            What::Head | What::Free | What::End => &[],
        };
        if what == What::Entry {
            if place < self.next || place == u64::MAX {
                return Err(reader.wrong("a place that comes twice, or out of order"));
            }
            self.next = place.saturating_add(1);
        }
        if what == What::End && !reader.at_end() {
            return Err(reader.wrong("something behind the end"));
        }
        Ok(Piece {
            what,
            callback,
            place,
            stamp,
            bound,
            due: due.wrapping_sub(1),
            order,
            length,
            key,
            value,
        })
    }
}
