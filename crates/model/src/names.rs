//! Names that are constants of this crate or of those before it, in a model that is read back: each is made once, and stays.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serializer};

/// A name; as a word of its own, since what is derived would borrow a reference from what is read.
pub type Name = &'static str;

/// Most names that are made; there are some hundred helpers, and fewer words for what came of their calls.
const MOST: usize = 4096;

/// The name that is spelt so; none where there are too many.
fn constant(text: String) -> Option<&'static str> {
    static MADE: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = made.get(text.as_str()) {
        return Some(name);
    }
    if made.len() >= MOST {
        return None;
    }
    let name: &'static str = text.leak();
    made.insert(name);
    Some(name)
}

/// Writes a name.
pub fn serialize<S: Serializer>(name: &'static str, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(name)
}

/// Reads it.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<&'static str, D::Error> {
    constant(String::deserialize(d)?).ok_or_else(|| serde::de::Error::custom("too many names"))
}

/// The same where there may be none.
pub mod maybe {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes a name, or that there is none.
    pub fn serialize<S: Serializer>(name: &Option<&'static str>, s: S) -> Result<S::Ok, S::Error> {
        name.serialize(s)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<&'static str>, D::Error> {
        let name = Option::<String>::deserialize(d)?;
        let made = name
            .map(|n| super::constant(n).ok_or_else(|| serde::de::Error::custom("too many names")));
        made.transpose()
    }
}
