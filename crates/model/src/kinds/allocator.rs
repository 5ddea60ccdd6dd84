//! Numbers that are leased. Which free number a lease gives is not defined: it is a symbol within the
//! object's range, and absent before.

use super::{Address, Answer, Meaning};
use crate::model::Effect;

const fn on_number(helper: &'static str, effect: Effect, answer: Answer) -> Meaning {
    Meaning {
        helper,
        effect,
        address: Address::Number,
        answer,
    }
}

/// A handler's allocator.
pub const KINDS: (&[&str], &[Meaning]) = (
    &["allocator"],
    &[
        Meaning {
            helper: "allocator_lease",
            effect: Effect::Write,
            address: Address::New,
            answer: Answer::Leased,
        },
        on_number("allocator_get", Effect::Read, Answer::Value),
        on_number("allocator_refresh", Effect::Refresh, Answer::Value),
        on_number("allocator_free", Effect::Write, Answer::Removed),
    ],
);
