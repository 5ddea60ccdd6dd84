//! Counts by key, estimated: keys share counters, so that every two accesses may be to the same place.
//! Additions commute; an addition's answer does not.

use super::{Address, Answer, Meaning};
use crate::model::Effect;

/// A handler's sketch.
pub const KINDS: (&[&str], &[Meaning]) = (
    &["sketch"],
    &[
        Meaning {
            helper: "sketch_count",
            effect: Effect::Read,
            address: Address::Key,
            answer: Answer::Estimate,
        },
        Meaning {
            helper: "sketch_add",
            effect: Effect::Add,
            address: Address::Key,
            answer: Answer::Estimate,
        },
    ],
);
