//! Receive side scaling: from a frame to a queue.

mod lookup;

use std::collections::BTreeMap;

pub use lookup::Lookup;

use crate::fields::{Field, Kind, Parsed, parse};
use crate::nic::{Choice, Nic, Symmetry};
use crate::toeplitz::{self, MICROSOFT_KEY};

/// RSS as a device of a certain model does it, with its key, its fields and its table. Key and table may be
/// secret (`keys::Keys`), so debug output shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Rss {
    key: Vec<u8>,
    symmetry: Symmetry,
    selected: BTreeMap<Kind, Vec<Field>>,
    table: Vec<u32>,
}

impl std::fmt::Debug for Rss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rss")
            .field("symmetry", &self.symmetry)
            .field("selected", &self.selected)
            .field("entries", &self.table.len())
            .finish_non_exhaustive()
    }
}

/// A setting that the device cannot take.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RssError {
    /// A key of the wrong length.
    #[error("{nic} takes a key of {wanted} bytes, and this one has {given}")]
    Key {
        /// the device
        nic: String,
        /// bytes that it takes
        wanted: usize,
        /// bytes of the key
        given: usize,
    },
    /// A table of a size that the device does not have, or that names a queue that does not exist.
    #[error("{nic} does not take this indirection table: {what}")]
    Table {
        /// the device
        nic: String,
        /// what is wrong with it
        what: String,
    },
    /// Fields that the device cannot hash.
    #[error("{nic} cannot hash these fields of {kind}")]
    Fields {
        /// the device
        nic: String,
        /// the kind of packet
        kind: &'static str,
    },
    /// Symmetric hashing asked of a device that does not have it.
    #[error("{nic} has no symmetric hash")]
    Symmetry {
        /// the device
        nic: String,
    },
}

/// The device's reading of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hashed {
    /// what the device took it for
    pub kind: Kind,
    /// the hash; none where nothing of this kind is hashed, and then the packet goes where the table's
    /// first entry says
    pub hash: Option<u32>,
}

impl Rss {
    /// As the driver sets a device up when nobody says anything: the key of the specification (repeated
    /// where the device's is longer), the fields that are on, entry `i` of the table leading to queue
    /// `i mod queues`.
    #[must_use]
    pub fn new(nic: &Nic, queues: u32) -> Self {
        let on = nic.kinds.iter().filter(|(_, rule)| rule.on);
        Self {
            key: MICROSOFT_KEY
                .iter()
                .copied()
                .cycle()
                .take(nic.key_bytes)
                .collect(),
            symmetry: Symmetry::None,
            selected: on
                .map(|(kind, rule)| (*kind, rule.fields.clone()))
                .collect(),
            table: round_robin(nic.table_sizes.first().copied().unwrap_or(1), queues),
        }
    }

    /// Whether it hashes every packet as the other one does, whatever their tables are.
    #[must_use]
    pub fn hashes_as(&self, other: &Self) -> bool {
        let of = |rss: &Self| (rss.key.clone(), rss.symmetry, rss.selected.clone());
        of(self) == of(other) && self.table.len() == other.table.len()
    }

    /// With this key.
    ///
    /// # Errors
    /// [`RssError::Key`] when it has not the device's length.
    pub fn with_key(mut self, nic: &Nic, key: &[u8]) -> Result<Self, RssError> {
        if key.len() != nic.key_bytes {
            return Err(RssError::Key {
                nic: nic.title.clone(),
                wanted: nic.key_bytes,
                given: key.len(),
            });
        }
        self.key = key.to_vec();
        Ok(self)
    }

    /// With this indirection table, over `queues` queues.
    ///
    /// # Errors
    /// [`RssError::Table`] when the device has no table of this size, or an entry names no queue.
    pub fn with_table(mut self, nic: &Nic, table: &[u32], queues: u32) -> Result<Self, RssError> {
        let wrong = |what: String| RssError::Table {
            nic: nic.title.clone(),
            what,
        };
        if !nic.table_sizes.contains(&table.len()) {
            let sizes = &nic.table_sizes;
            return Err(wrong(format!("{} entries; it has {sizes:?}", table.len())));
        }
        if let Some(queue) = table.iter().find(|queue| **queue >= queues) {
            return Err(wrong(format!("queue {queue} of {queues}")));
        }
        self.table = table.to_vec();
        Ok(self)
    }

    /// With a table of this many entries, evenly over `queues` queues.
    ///
    /// # Errors
    /// [`RssError::Table`] when the device has no table of this size.
    pub fn with_table_size(self, nic: &Nic, size: usize, queues: u32) -> Result<Self, RssError> {
        // Not larger than any device's, so that a wrong size cannot ask for much memory.
        let table = round_robin(size.min(1 << 17), queues);
        self.with_table(nic, &table, queues)
    }

    /// With these fields of a kind hashed; without any the kind is not hashed as itself.
    ///
    /// # Errors
    /// [`RssError::Fields`] when the device cannot hash them.
    pub fn with_fields(
        mut self,
        nic: &Nic,
        kind: Kind,
        fields: &[Field],
    ) -> Result<Self, RssError> {
        if fields.is_empty() {
            self.selected.remove(&kind);
            return Ok(self);
        }
        let wrong = || RssError::Fields {
            nic: nic.title.clone(),
            kind: kind.name(),
        };
        let rule = nic.kinds.get(&kind).ok_or_else(wrong)?;
        let offered = fields.iter().all(|f| rule.fields.contains(f));
        let chosen: Vec<Field> = rule
            .fields
            .iter()
            .copied()
            .filter(|f| fields.contains(f))
            .collect();
        if !offered || (rule.choice == Choice::All && chosen != rule.fields) {
            return Err(wrong());
        }
        self.selected.insert(kind, chosen);
        Ok(self)
    }

    /// With these fields hashed of every kind that has any of them: a kind whose fields the device takes
    /// only together is left to the coarser kind, where that has what is wanted.
    ///
    /// # Errors
    /// [`RssError::Fields`] when the device cannot hash them.
    pub fn with_only(mut self, nic: &Nic, fields: &[Field]) -> Result<Self, RssError> {
        let kept = |rule: &crate::nic::Rule| -> Vec<Field> {
            let all = rule.fields.iter().copied();
            all.filter(|f| fields.contains(f)).collect()
        };
        for (kind, rule) in &nic.kinds {
            let wanted = kept(rule);
            let whole = rule.choice == Choice::Any || wanted == rule.fields;
            let coarser = kind.coarser().and_then(|kind| nic.kinds.get(&kind));
            let left = coarser.is_some_and(|rule| kept(rule) == wanted);
            if !wanted.is_empty() && !whole && !left {
                return Err(RssError::Fields {
                    nic: nic.title.clone(),
                    kind: kind.name(),
                });
            }
            self = self.with_fields(nic, *kind, if whole { &wanted } else { &[] })?;
        }
        Ok(self)
    }

    /// With both directions of a flow hashed alike, in the device's own way.
    ///
    /// # Errors
    /// [`RssError::Symmetry`] when the device has none.
    pub fn symmetric(mut self, nic: &Nic) -> Result<Self, RssError> {
        if nic.symmetry == Symmetry::None {
            return Err(RssError::Symmetry {
                nic: nic.title.clone(),
            });
        }
        self.symmetry = nic.symmetry;
        Ok(self)
    }

    /// The indirection table.
    #[must_use]
    pub fn table(&self) -> &[u32] {
        &self.table
    }

    /// The hash of a frame.
    #[must_use]
    pub fn hash(&self, frame: &[u8]) -> Hashed {
        let parsed = parse(frame);
        let (kind, fields) = self.fields_of(parsed.kind);
        let input = fields.map(|fields| self.input(&parsed, fields));
        let hash = input.map(|input| toeplitz::hash(&self.key, input.bytes()));
        Hashed { kind, hash }
    }

    /// The queue of a frame.
    #[must_use]
    pub fn queue(&self, frame: &[u8]) -> u32 {
        self.entry(self.hash(frame).hash.unwrap_or(0))
    }

    /// The queue of a frame that was read before, or of what stands for it.
    #[must_use]
    pub fn queue_of(&self, parsed: &Parsed) -> u32 {
        self.entry(self.hash_of(parsed))
    }

    /// The hash of such a frame; 0, which is the table's first entry, where nothing of its kind is hashed.
    #[must_use]
    pub fn hash_of(&self, parsed: &Parsed) -> u32 {
        let fields = self.fields_of(parsed.kind).1;
        let input = fields.map(|fields| self.input(parsed, fields));
        input.map_or(0, |input| toeplitz::hash(&self.key, input.bytes()))
    }

    /// The place in the table of a packet that was read before.
    #[must_use]
    pub fn index_of(&self, parsed: &Parsed) -> u32 {
        let fields = self.fields_of(parsed.kind).1;
        let input = fields.map(|fields| self.input(parsed, fields));
        let hash = input.map_or(0, |input| toeplitz::hash(&self.key, input.bytes()));
        self.place(hash) as u32
    }

    fn place(&self, hash: u32) -> usize {
        hash as usize & (self.table.len().wrapping_sub(1))
    }

    /// Bucket of a hash.
    fn entry(&self, hash: u32) -> u32 {
        self.table.get(self.place(hash)).copied().unwrap_or(0)
    }

    /// The same, worked out beforehand as far as it can be.
    #[must_use]
    pub fn lookup(&self) -> Lookup {
        Lookup::new(self)
    }

    /// The fields that are hashed of a kind, or of the coarser one that stands for it.
    fn fields_of(&self, mut kind: Kind) -> (Kind, Option<&[Field]>) {
        loop {
            if let Some(fields) = self.selected.get(&kind) {
                return (kind, Some(fields));
            }
            match kind.coarser() {
                Some(coarser) => kind = coarser,
                None => return (kind, None),
            }
        }
    }

    /// Input of the hash.
    fn input(&self, parsed: &Parsed, fields: &[Field]) -> Input {
        let mut input = Input::default();
        for field in fields {
            self.add(&mut input, parsed, *field, fields);
        }
        input
    }

    /// Adds a field, or what the symmetric hash puts in its place where its partner is hashed too.
    fn add(&self, input: &mut Input, parsed: &Parsed, field: Field, fields: &[Field]) {
        let (first, partner) = match field {
            Field::SourceAddress => (true, Field::DestinationAddress),
            Field::DestinationAddress => (false, Field::SourceAddress),
            Field::SourcePort => (true, Field::DestinationPort),
            Field::DestinationPort => (false, Field::SourcePort),
        };
        let (mine, other) = (parsed.field(field), parsed.field(partner));
        if self.symmetry == Symmetry::None || !fields.contains(&partner) {
            return input.extend(mine.iter().copied());
        }
        let pairs = || mine.iter().zip(other);
        match self.symmetry {
            Symmetry::None => input.extend(mine.iter().copied()),
            Symmetry::Xor => input.extend(pairs().map(|(a, b)| a ^ b)),
            Symmetry::OrXor if first => input.extend(pairs().map(|(a, b)| a | b)),
            Symmetry::OrXor => input.extend(pairs().map(|(a, b)| a ^ b)),
            Symmetry::Sort => {
                let (low, high) = (mine.min(other), mine.max(other));
                input.extend(if first { low } else { high }.iter().copied());
            }
        }
    }
}

fn round_robin(size: usize, queues: u32) -> Vec<u32> {
    (0..size as u32)
        .map(|entry| entry % queues.max(1))
        .collect()
}

/// The longest input: two IPv6 addresses and two ports.
const INPUT: usize = 36;

/// Bytes to hash.
struct Input {
    bytes: [u8; INPUT],
    length: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            bytes: [0; INPUT],
            length: 0,
        }
    }
}

impl Input {
    fn extend(&mut self, bytes: impl Iterator<Item = u8>) {
        for byte in bytes {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests;
