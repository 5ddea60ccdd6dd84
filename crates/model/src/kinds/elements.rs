//! Elements by index, all there from the start. Two accesses are to one element if their indices are equal;
//! a miss means that the index is not below the capacity.

use super::{Address, Answer, Meaning};
use crate::model::Effect;

/// A handler's vector.
pub const VECTOR: (&[&str], &[Meaning]) = (
    &["vector"],
    &[Meaning {
        helper: "vector_at",
        effect: Effect::Read,
        address: Address::Number,
        answer: Answer::Element,
    }],
);

/// The kernel's arrays.
pub const ARRAY: (&[&str], &[Meaning]) = (
    &["array", "percpu_array"],
    &[
        Meaning {
            helper: "map_lookup_elem",
            effect: Effect::Read,
            address: Address::Key,
            answer: Answer::Element,
        },
        Meaning {
            helper: "map_lookup_percpu_elem",
            effect: Effect::Read,
            address: Address::Key,
            answer: Answer::Element,
        },
        Meaning {
            helper: "map_update_elem",
            effect: Effect::Write,
            address: Address::Key,
            answer: Answer::Status,
        },
        Meaning {
            helper: "map_delete_elem",
            effect: Effect::Read,
            address: Address::Key,
            answer: Answer::Refused,
        },
    ],
);
