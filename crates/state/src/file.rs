//! The file of a run's state.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

use crate::bytes::{Malformed, Reader, put, put_bytes};
use crate::content::{Content, Form};

/// The version of the file that this program writes and reads.
pub const VERSION: u32 = 1;

/// The first bytes of each such file.
const MAGIC: &[u8; 8] = b"millrace";

/// Bytes in front of the body: magic, version, the body's length and its SHA-256.
const FRONT: usize = 8 + 4 + 8 + 32;

/// Why a file is not a run's state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// it does not begin as one does
    #[error("it is no state of a run")]
    Foreign,
    /// another version of the program wrote it
    #[error(
        "it was written in version {0} of the format, and this program reads version {VERSION}"
    )]
    Version(u32),
    /// it is shorter or longer than it says
    #[error(
        "it has {has} bytes where it says {says}: it was not written to its end, or something was appended"
    )]
    Length {
        /// bytes that it says
        says: u64,
        /// bytes that it has
        has: u64,
    },
    /// its bytes are not those that were written
    #[error("its checksum is wrong: bytes of it have changed since it was written")]
    Checksum,
    /// the checksum is right, and still no program writes this
    #[error("its content is malformed: {0}")]
    Malformed(#[from] Malformed),
}

/// What an object must be, to take up what another one was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// the author's name
    pub name: String,
    /// the kind's name
    pub kind: String,
    /// bytes of a key
    pub key_bytes: u64,
    /// bytes of a value
    pub value_bytes: u64,
    /// most entries of each part
    pub capacity: u64,
    /// how the workers hold it
    pub held: String,
    /// what else its content depends on, as a list of programs that values name
    pub detail: String,
}

impl Identity {
    /// Sizes of its entries.
    #[must_use]
    pub fn form(&self) -> Form {
        Form {
            key_bytes: usize::try_from(self.key_bytes).unwrap_or(usize::MAX),
            value_bytes: usize::try_from(self.value_bytes).unwrap_or(usize::MAX),
        }
    }
}

/// One state object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// what it is
    pub identity: Identity,
    /// its content on each worker; of one that all share, once
    pub parts: Vec<Content>,
    /// elements that held something when packets began: key and value
    pub before: Vec<(Vec<u8>, Vec<u8>)>,
}

/// One element of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// what it is called
    pub name: String,
    /// of each worker: since when its timers run, ns, and how often the moment of each has come
    pub timers: Vec<(u64, Vec<u64>)>,
    /// its objects
    pub objects: Vec<Object>,
}

/// All that a run needs to go on where another one was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// ns since the epoch: the latest time that packets have seen
    pub time: u64,
    /// what random draws depend on
    pub seed: u64,
    /// the ingress number of each worker's next packet
    pub numbers: Vec<u64>,
    /// who gets which packet: what steering was made from, as it was written
    pub steering: Vec<u8>,
    /// the elements, in their order
    pub elements: Vec<Element>,
}

/// The first part of a state, before its elements: enough to decide how the next run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// what random draws depend on
    pub seed: u64,
    /// workers of the run
    pub workers: usize,
    /// who gets which packet, as in [`State::steering`]
    pub steering: Vec<u8>,
}

impl Front {
    /// The most bytes at the begin of a file that hold it.
    pub const MOST: usize = 1 << 16;

    /// Reads it from the first bytes of a file of `length` bytes; the checksum is left to [`State::read`].
    ///
    /// # Errors
    /// They are not those of a state that this version has written.
    pub fn read(bytes: &[u8], length: u64) -> Result<Self, Wrong> {
        let reader = &mut Reader::new(sized(bytes, length)?);
        let _time = reader.number()?;
        Ok(Self {
            seed: reader.number()?,
            workers: reader.list(Reader::number)?.len(),
            steering: reader.slice()?.to_vec(),
        })
    }
}

/// The body behind magic, version and length, which must be those of a file of `length` bytes.
fn sized(bytes: &[u8], length: u64) -> Result<&[u8], Wrong> {
    if bytes.get(..MAGIC.len()) != Some(MAGIC) {
        return Err(Wrong::Foreign);
    }
    let four = bytes.get(8..).and_then(|b| b.first_chunk());
    let version = four.map_or(0, |b| u32::from_le_bytes(*b));
    if version != VERSION {
        return Err(Wrong::Version(version));
    }
    let eight = bytes.get(12..).and_then(|b| b.first_chunk());
    let says = eight.map_or(0, |b| u64::from_le_bytes(*b));
    let says = says.saturating_add(FRONT as u64);
    match bytes.get(FRONT..) {
        Some(body) if says == length => Ok(body),
        _ => Err(Wrong::Length { says, has: length }),
    }
}

impl State {
    /// Writes it, as [`State::read`] reads it.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let body = self.body();
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&(body.len() as u64).to_le_bytes())?;
        out.write_all(&Sha256::digest(&body))?;
        out.write_all(&body)
    }

    fn body(&self) -> Vec<u8> {
        let out = &mut Vec::new();
        put(out, self.time);
        put(out, self.seed);
        numbers(out, &self.numbers);
        put_bytes(out, &self.steering);
        put(out, self.elements.len() as u64);
        for element in &self.elements {
            put_bytes(out, element.name.as_bytes());
            put(out, element.timers.len() as u64);
            for (start, past) in &element.timers {
                put(out, *start);
                numbers(out, past);
            }
            put(out, element.objects.len() as u64);
            for object in &element.objects {
                object.put(out);
            }
        }
        std::mem::take(out)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// They are not those of a state that this version has written.
    pub fn read(bytes: &[u8]) -> Result<Self, Wrong> {
        let body = sized(bytes, bytes.len() as u64)?;
        if bytes.get(20..FRONT) != Some(Sha256::digest(body).as_slice()) {
            return Err(Wrong::Checksum);
        }
        Ok(Self::of_body(body)?)
    }

    fn of_body(body: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(body);
        let state = Self {
            time: reader.number()?,
            seed: reader.number()?,
            numbers: reader.list(Reader::number)?,
            steering: reader.slice()?.to_vec(),
            elements: reader.list(|reader| {
                Ok(Element {
                    name: reader.text()?,
                    timers: reader.list(|r| Ok((r.number()?, r.list(Reader::number)?)))?,
                    objects: reader.list(Object::of)?,
                })
            })?,
        };
        match reader.at_end() {
            true => Ok(state),
            false => Err(reader.wrong("something behind the end")),
        }
    }
}

fn numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    put(out, numbers.len() as u64);
    for number in numbers {
        put(out, *number);
    }
}

impl Object {
    fn put(&self, out: &mut Vec<u8>) {
        let of = &self.identity;
        for text in [&of.name, &of.kind, &of.held, &of.detail] {
            put_bytes(out, text.as_bytes());
        }
        for number in [of.key_bytes, of.value_bytes, of.capacity] {
            put(out, number);
        }
        put(out, self.parts.len() as u64);
        for part in &self.parts {
            put_bytes(out, part.as_bytes());
        }
        put(out, self.before.len() as u64);
        for (key, value) in &self.before {
            put_bytes(out, key);
            put_bytes(out, value);
        }
    }

    fn of(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut text = || reader.text();
        let [name, kind, held, detail] = [text()?, text()?, text()?, text()?];
        let mut number = || reader.number();
        let [key_bytes, value_bytes, capacity] = [number()?, number()?, number()?];
        let parts = reader.list(|r| r.slice().map(|b| Content::from_bytes(b.to_vec())))?;
        let before = reader.list(|r| Ok((r.slice()?.to_vec(), r.slice()?.to_vec())))?;
        Ok(Self {
            identity: Identity {
                name,
                kind,
                key_bytes,
                value_bytes,
                capacity,
                held,
                detail,
            },
            parts,
            before,
        })
    }
}
