//! Keys: fields in bytes, and the 32-bit words that they are compared by.

use serde::Serialize;

/// Byte order of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// most significant byte first, as headers have it
    Network,
    /// least significant byte first, as the processors that we run on have it
    Host,
}

/// One field of a key: an unsigned number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Field {
    /// its name in rules
    pub name: String,
    /// where it is in the key, in bytes
    pub offset: u32,
    /// its size in bytes, 1 to 16
    pub bytes: u32,
    /// its byte order
    pub order: Order,
}

impl Field {
    /// The largest number that it holds.
    #[must_use]
    pub fn max(&self) -> u128 {
        match self.bytes {
            0 => 0,
            n => u128::MAX >> (128 - 8 * n.min(16)),
        }
    }
}

/// A part of a field of at most 32 bits: what a level of a diagram compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Word {
    /// the field, by its index
    pub field: usize,
    /// where the word is in the key, in bytes
    pub offset: u32,
    /// its size in bytes, 1 to 4
    pub bytes: u32,
    /// its byte order
    pub order: Order,
}

impl Word {
    /// The largest number that it holds.
    #[must_use]
    pub fn max(&self) -> u32 {
        match self.bytes {
            0 => 0,
            n => u32::MAX >> (32 - 8 * n.min(4)),
        }
    }
}

/// The fields of a key. Bytes of the key in no field do not matter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Key {
    bytes: u32,
    fields: Vec<Field>,
    words: Vec<Word>,
}

/// The most words of a key, so 64 bytes of fields.
pub const MOST_WORDS: usize = 16;

/// Why there is no such key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// no field
    #[error("a key without a field that rules can name")]
    Empty,
    /// too many of them
    #[error(
        "its fields are {0} words of 4 bytes, {MOST_WORDS} is the most; classify by fewer fields"
    )]
    Words(usize),
    /// a field of no size, or of too many bytes
    #[error("the field `{name}` has {bytes} bytes; 1 to 16 can be compared")]
    Size {
        /// its name
        name: String,
        /// its size
        bytes: u32,
    },
    /// a field beyond the end
    #[error("the field `{0}` ends behind the key")]
    Outside(String),
    /// a name twice
    #[error("two fields `{0}`")]
    Twice(String),
}

impl Key {
    /// A key of `bytes` bytes with these fields.
    ///
    /// # Errors
    /// [`KeyError`] where they are not a key.
    pub fn new(bytes: u32, fields: Vec<Field>) -> Result<Self, KeyError> {
        if fields.is_empty() {
            return Err(KeyError::Empty);
        }
        let mut words = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            if !(1..=16).contains(&field.bytes) {
                return Err(KeyError::Size {
                    name: field.name.clone(),
                    bytes: field.bytes,
                });
            }
            if field
                .offset
                .checked_add(field.bytes)
                .is_none_or(|end| end > bytes)
            {
                return Err(KeyError::Outside(field.name.clone()));
            }
            if fields.iter().take(index).any(|f| f.name == field.name) {
                return Err(KeyError::Twice(field.name.clone()));
            }
            words.extend(words_of(index, field));
        }
        if words.len() > MOST_WORDS {
            return Err(KeyError::Words(words.len()));
        }
        Ok(Self {
            bytes,
            fields,
            words,
        })
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Its fields.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Its words: each field's, the most significant first.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The words of a key's bytes; what is missing at the end counts as zeros.
    #[must_use]
    pub fn split(&self, bytes: &[u8]) -> Vec<u32> {
        let read = |w: &Word| {
            (0..w.bytes).fold(0, |sum, i| {
                let at = match w.order {
                    Order::Network => w.offset + i,
                    Order::Host => w.offset + w.bytes - 1 - i,
                };
                sum << 8 | u32::from(bytes.get(at as usize).copied().unwrap_or(0))
            })
        };
        self.words.iter().map(read).collect()
    }

    /// The bytes of a key with these words; what is in no field is zero.
    #[must_use]
    pub fn join(&self, words: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes as usize];
        for (w, value) in self.words.iter().zip(words) {
            for i in 0..w.bytes {
                let at = match w.order {
                    Order::Network => w.offset + w.bytes - 1 - i,
                    Order::Host => w.offset + i,
                };
                if let Some(byte) = bytes.get_mut(at as usize) {
                    *byte = (value >> (8 * i)) as u8;
                }
            }
        }
        bytes
    }

    /// All bytes of a key, in network order, for rules that no names are known for: fields of up to 16 bytes.
    ///
    /// # Errors
    /// As [`Self::new`]: a key of more than 64 bytes.
    pub fn whole(bytes: u32) -> Result<Self, KeyError> {
        let fields = (0..bytes).step_by(16).map(|offset| Field {
            name: format!("at_{offset}"),
            offset,
            bytes: (bytes - offset).min(16),
            order: Order::Network,
        });
        Self::new(bytes, fields.collect())
    }

    /// The five fields of a flow of IPv4, 16 bytes in network order, as `struct flow4` of the handler dialect.
    #[must_use]
    pub fn flow4() -> Self {
        let field = |name: &str, offset, bytes| Field {
            name: name.into(),
            offset,
            bytes,
            order: Order::Network,
        };
        let fields = vec![
            field("src", 0, 4),
            field("dst", 4, 4),
            field("sport", 8, 2),
            field("dport", 10, 2),
            field("protocol", 12, 1),
        ];
        let words = (fields.iter().enumerate())
            .flat_map(|(i, f)| words_of(i, f))
            .collect();
        Self {
            bytes: 16,
            fields,
            words,
        }
    }
}

/// The words of a field, the most significant first; the first may be shorter.
fn words_of(index: usize, field: &Field) -> Vec<Word> {
    let mut words = Vec::new();
    let mut end = field.bytes;
    // From the least significant on.
    while end > 0 {
        let bytes = end.min(4);
        end -= bytes;
        words.push(Word {
            field: index,
            offset: match field.order {
                Order::Network => field.offset + end,
                Order::Host => field.offset + field.bytes - end - bytes,
            },
            bytes,
            order: field.order,
        });
    }
    words.reverse();
    words
}
