//! Values by the longest prefix that matches. Only looking up has a meaning here: two keys may find one
//! entry, which key equality does not say, so programs that change prefixes are not followed.

use super::{Address, Answer, Meaning};
use crate::model::Effect;

/// A handler's table of prefixes, and the kernel's.
pub const KINDS: (&[&str], &[Meaning]) = (
    &["lpm", "lpm_trie"],
    &[
        Meaning {
            helper: "lpm_get",
            effect: Effect::Read,
            address: Address::Key,
            answer: Answer::Value,
        },
        Meaning {
            helper: "map_lookup_elem",
            effect: Effect::Read,
            address: Address::Key,
            answer: Answer::Value,
        },
    ],
);
