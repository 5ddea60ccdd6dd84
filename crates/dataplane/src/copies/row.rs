//! Rows as bytes. A frame is of one worker:
//!
//! ```text
//! worker: 2 bytes, its clock: 8 bytes, ns since the epoch; little-endian, as numbers in values are
//! rows: a number of 7 bits a byte, the object times 8 and the kind of row, then
//!   0 there is nothing:     place
//!   1 another value:        place, clock - stamp, value
//!   2 an entry:             place, bucket, clock - stamp, key, value
//!   3 a bucket begins anew: bucket
//!   4 a copy begins:        version of the table; it is not whole from here on
//!   5 a copy is whole:      version of the table
//!   6 there is no copy
//! ```
//!
//! Differences of times have their sign in the lowest bit.

/// Why bytes are no rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RowError {
    /// They end within a row.
    #[error("the rows end within one")]
    Short,
    /// There is no such kind of row.
    #[error("there is no row of kind {kind}")]
    Kind {
        /// its kind
        kind: u64,
    },
    /// A row is of no object that has copies.
    #[error("a row is of object {object}, of which there are no copies")]
    Object {
        /// its index
        object: u64,
    },
    /// An entry is of another bucket than the row says, or there is no such bucket.
    #[error("a row of object {object} has an entry of another bucket than {bucket}")]
    Bucket {
        /// its index
        object: usize,
        /// as the row says
        bucket: u64,
    },
    /// There is no such worker.
    #[error("the rows are of worker {worker}: there are {workers}, from 0")]
    Worker {
        /// the one that they name
        worker: usize,
        /// how many there are
        workers: usize,
    },
}

/// What a row does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Nothing = 0,
    Value = 1,
    Entry = 2,
    Anew = 3,
    Begins = 4,
    Whole = 5,
    Void = 6,
}

/// Bytes of a frame before its rows.
pub const HEAD: usize = 10;

/// A frame of a worker.
pub fn begin(worker: usize, clock: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 << 10);
    bytes.extend_from_slice(&(worker as u16).to_le_bytes());
    bytes.extend_from_slice(&clock.to_le_bytes());
    bytes
}

/// The clock of the worker that wrote a frame, ns since the epoch, as it began to.
#[must_use]
pub fn clock_of(frame: &[u8]) -> Option<u64> {
    Reader(frame).begin().ok().map(|(_, clock)| clock)
}

/// Writes the head of a row.
pub fn head(bytes: &mut Vec<u8>, object: usize, kind: Kind) {
    number(bytes, (object as u64) << 3 | kind as u64);
}

/// Writes a number.
pub fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Writes how far a stamp is before the frame's clock; 0, of what does not expire, is itself.
pub fn stamp(bytes: &mut Vec<u8>, clock: u64, stamp: u64) {
    let apart = clock.wrapping_sub(stamp) as i64;
    let folded = (apart << 1 ^ apart >> 63) as u64;
    number(bytes, folded);
}

/// What is left to read.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The worker and its clock.
    pub fn begin(&mut self) -> Result<(usize, u64), RowError> {
        let (worker, rest) = self.0.split_first_chunk().ok_or(RowError::Short)?;
        let (clock, rest) = rest.split_first_chunk().ok_or(RowError::Short)?;
        self.0 = rest;
        Ok((
            usize::from(u16::from_le_bytes(*worker)),
            u64::from_le_bytes(*clock),
        ))
    }

    /// The object and the kind of the next row.
    pub fn head(&mut self) -> Result<(u64, Kind), RowError> {
        let head = self.number()?;
        let kind = match head & 7 {
            0 => Kind::Nothing,
            1 => Kind::Value,
            2 => Kind::Entry,
            3 => Kind::Anew,
            4 => Kind::Begins,
            5 => Kind::Whole,
            6 => Kind::Void,
            kind => return Err(RowError::Kind { kind }),
        };
        Ok((head >> 3, kind))
    }

    pub fn number(&mut self) -> Result<u64, RowError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(RowError::Short)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(number);
            }
        }
        Err(RowError::Short)
    }

    pub fn stamp(&mut self, clock: u64) -> Result<u64, RowError> {
        let folded = self.number()?;
        let apart = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        Ok(clock.wrapping_sub(apart as u64))
    }

    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], RowError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(RowError::Short)?;
        self.0 = rest;
        Ok(bytes)
    }
}
