//! Reads and writes of the calls on each kind of state object, one file a family of kinds.
//!
//! A [`Meaning`] says of a helper which entry it is about, what it does to it and what it answers; the
//! execution of those (exec/answer.rs) knows no kind. What is about no entry, as records and queues are, or
//! not about state at all, is in exec/calls/, one file each.

mod allocator;
mod elements;
mod keyed;
mod nested;
mod prefixes;
mod sketch;
mod targets;

use crate::model::Effect;

/// Entry that a call refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// the one of the key that the argument points to
    Key,
    /// the one of the number in the second argument
    Number,
    /// a new one, of a number that the call answers
    New,
}

/// Result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// a pointer to the value; null if the entry is absent
    Value,
    /// a pointer to the value; null if the index is not below the capacity
    Element,
    /// a pointer to the value, which is stored; null if the object is full and the entry was absent
    Stored,
    /// 1 if the entry was there, else 0; it is absent now
    Removed,
    /// the kernel's update: 0, the value is stored; or a negative error, nothing is
    Status,
    /// the kernel's delete: 0, the entry is absent now; or -ENOENT, it was
    Deleted,
    /// a number of the object, with the value stored under it; -1 if none is free
    Leased,
    /// an estimate: a number that the model ties to nothing
    Estimate,
    /// a map; null if none is under the key
    Map,
    /// -EINVAL, always
    Refused,
}

/// Effect of a helper on an object of some kind.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// its name
    pub helper: &'static str,
    /// what it does
    pub effect: Effect,
    /// to which entry
    pub address: Address,
    /// what it answers
    pub answer: Answer,
}

/// Kinds, and what the calls on them mean.
const KINDS: &[(&[&str], &[Meaning])] = &[
    keyed::KINDS,
    keyed::KERNEL,
    keyed::LRU,
    elements::VECTOR,
    elements::ARRAY,
    allocator::KINDS,
    sketch::KINDS,
    prefixes::KINDS,
    targets::KINDS,
    nested::KINDS,
];

/// Effect of a helper on an object of this kind; none where it is not listed here.
#[must_use]
pub fn meaning(kind: &str, helper: &str) -> Option<Meaning> {
    let of_kind = KINDS.iter().filter(|k| k.0.contains(&kind));
    let mut all = of_kind.flat_map(|k| k.1);
    all.find(|m| m.helper == helper).copied()
}

/// Upper bound of a helper's effect on an object, where nothing is known of the path.
#[must_use]
pub fn at_most(kind: &str, helper: &str) -> Effect {
    match (meaning(kind, helper), helper) {
        (Some(m), _) => m.effect,
        (
            None,
            "map_lookup_elem"
            | "map_peek_elem"
            | "map_slot"
            | "redirect_map"
            | "fib_lookup"
            | "check_mtu"
            | "tail_call"
            | "ringbuf_query"
            | "map_lookup_percpu_elem",
        ) => Effect::Read,
        (None, _) => Effect::Write,
    }
}
