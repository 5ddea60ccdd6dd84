//! Receive side scaling at the rate of packets: for who steers them in software.

use super::{INPUT, Rss};
use crate::fields::{Field, Kind, Parsed, parse};
use crate::nic::Symmetry;
use crate::toeplitz::Table;

/// [`Rss`], with the hash's table made and the fields of each kind looked up.
#[derive(Clone, PartialEq, Eq)]
pub struct Lookup {
    rss: Rss,
    table: Table,
    /// in the order of [`Kind::ALL`], which is that of its values
    fields: Vec<Option<Vec<Field>>>,
}

impl std::fmt::Debug for Lookup {
    /// Without the hash's table, from which the key can be read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lookup").field(&self.rss).finish()
    }
}

impl Lookup {
    pub(super) fn new(rss: &Rss) -> Self {
        let fields = Kind::ALL.map(|kind| rss.fields_of(kind).1.map(<[Field]>::to_vec));
        Self {
            table: Table::new(&rss.key, INPUT),
            fields: fields.into(),
            rss: rss.clone(),
        }
    }

    /// The queue of a frame, as [`Rss::queue`].
    #[inline]
    #[must_use]
    pub fn queue(&self, frame: &[u8]) -> u32 {
        self.queue_of(&parse(frame))
    }

    /// The queue of a packet that was read before, as [`Rss::queue_of`].
    #[inline]
    #[must_use]
    pub fn queue_of(&self, parsed: &Parsed) -> u32 {
        self.rss.entry(self.hash(parsed))
    }

    /// The place in the table of a packet that was read before, as [`Rss::index_of`].
    #[inline]
    #[must_use]
    pub fn index_of(&self, parsed: &Parsed) -> u32 {
        self.rss.place(self.hash(parsed)) as u32
    }

    /// The place in the table of a hash.
    #[inline]
    #[must_use]
    pub fn index_of_hash(&self, hash: u32) -> u32 {
        self.rss.place(hash) as u32
    }

    /// How many entries the table has.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.rss.table().len() as u32
    }

    #[inline]
    fn hash(&self, parsed: &Parsed) -> u32 {
        match self.fields.get(parsed.kind as usize) {
            Some(Some(fields)) if self.rss.symmetry == Symmetry::None => {
                let part = |(hash, at), field: &Field| {
                    let bytes = parsed.field(*field);
                    (hash ^ self.table.part(at, bytes), at + bytes.len())
                };
                fields.iter().fold((0, 0), part).0
            }
            Some(Some(fields)) => self.table.hash(self.rss.input(parsed, fields).bytes()),
            _ => 0,
        }
    }
}
