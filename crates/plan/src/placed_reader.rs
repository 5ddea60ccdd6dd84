//! What keys of one shape say of packets, read at the rate of entries: a table of thousands is looked through while packets wait.
//!
//! Constants of the shape are compared byte by byte under a mask, and whole bytes of fields are copied; bits that stand alone follow. On a
//! key of 40 bytes that takes some tens of ns, where [`Placed::packet`] goes bit by bit.

use millrace_steer::{Field, Kind, Parsed};

use crate::key::Bit;
use crate::placed::Placed;

/// Bytes of the widest field, an IPv6 address.
const WIDEST: usize = 16;

/// A shape, made ready.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    port: usize,
    kind: Kind,
    /// the key is an index: bytes of the shape that it lacks are zero
    index: bool,
    /// bits of the key that are constant, and what they are
    mask: Vec<u8>,
    value: Vec<u8>,
    /// bytes of the key that are bytes of a field: which byte, of which field, and where there
    bytes: Vec<(usize, usize, usize)>,
    /// bits of the key that are bits of a field and are in no such byte
    bits: Vec<(usize, usize, usize)>,
    /// bytes of each field
    lengths: [usize; 4],
}

impl Reader {
    pub fn of(placed: &Placed) -> Self {
        let kind = placed.kind();
        let place = |field: Field| Field::ALL.iter().position(|f| *f == field);
        let mut reader = Self {
            port: placed.port(),
            kind,
            index: placed.is_index(),
            mask: Vec::new(),
            value: Vec::new(),
            bytes: Vec::new(),
            bits: Vec::new(),
            lengths: Field::ALL.map(|f| (f.bits(kind) / 8).min(WIDEST)),
        };
        for (at, byte) in placed.key().chunks(8).enumerate() {
            let (mut mask, mut value) = (0_u8, 0_u8);
            let whole = match byte.first() {
                Some(Some(Bit::Field(field, first))) if first % 8 == 0 && byte.len() == 8 => {
                    let mut next = *first;
                    byte.iter()
                        .all(|bit| {
                            let is = *bit == Some(Bit::Field(*field, next));
                            next += 1;
                            is
                        })
                        .then_some((*field, usize::from(first / 8)))
                }
                _ => None,
            };
            if let Some((field, from)) = whole {
                reader.bytes.extend(place(field).map(|f| (at, f, from)));
            }
            for (i, bit) in byte.iter().enumerate() {
                match bit {
                    Some(Bit::Const(is)) => {
                        mask |= 0x80 >> i;
                        value |= u8::from(*is) << (7 - i);
                    }
                    Some(Bit::Field(field, from)) if whole.is_none() => {
                        let of = place(*field).map(|f| (8 * at + i, f, usize::from(*from)));
                        reader.bits.extend(of);
                    }
                    Some(Bit::Field(..) | Bit::Foreign(..)) | None => {}
                }
            }
            reader.mask.push(mask);
            reader.value.push(value);
        }
        reader
    }

    /// The port of the packets.
    #[inline]
    pub fn port(&self) -> usize {
        self.port
    }

    /// As [`Placed::packet`].
    pub fn packet(&self, key: &[u8]) -> Option<Parsed> {
        let mut wide = [0_u8; size_of::<u64>()];
        let missing = self.index && key.len() < self.mask.len();
        let key = match (missing, wide.get_mut(..key.len())) {
            (true, Some(own)) => {
                own.copy_from_slice(key);
                wide.get(..self.mask.len())?
            }
            _ => key,
        };
        let constants = self.mask.iter().zip(&self.value);
        if key.len() != self.mask.len()
            || !key
                .iter()
                .zip(constants)
                .all(|(k, (m, v))| (k ^ v) & m == 0)
        {
            return None;
        }
        let mut fields = [[0_u8; WIDEST]; 4];
        // A bit that stands in the key twice is the same there.
        let mut seen = [[0_u8; WIDEST]; 4];
        let mut put = |field: usize, at: usize, bits: u8, mask: u8| {
            let to = fields.get_mut(field)?.get_mut(at)?;
            let seen = seen.get_mut(field)?.get_mut(at)?;
            let same = (*to ^ bits) & *seen & mask == 0;
            *to |= bits & mask;
            *seen |= mask;
            same.then_some(())
        };
        for (from, field, at) in &self.bytes {
            put(*field, *at, *key.get(*from)?, 0xff)?;
        }
        for (from, field, at) in &self.bits {
            let is = key.get(from / 8)? >> (7 - from % 8) & 1;
            put(*field, at / 8, is << (7 - at % 8), 0x80 >> (at % 8))?;
        }
        let [a, b, c, d] = &fields;
        let [la, lb, lc, ld] = self.lengths;
        Some(Parsed::of(
            self.kind,
            [a.get(..la)?, b.get(..lb)?, c.get(..lc)?, d.get(..ld)?],
        ))
    }
}
