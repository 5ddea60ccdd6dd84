//! Meanings of calls on entries of state objects: the entry a call refers to, and its result.
//!
//! The effect on the entry is the kind's to say ([`StateKind::does`]); the execution of a [`Meaning`]
//! (exec/answer.rs) knows no kind. What is about no entry, as records and queues are, or not about state at all, is in
//! exec/calls/, one file each.
//!
//! Two accesses are to one entry if their keys are equal, and refreshes of one entry commute. A miss means that the key
//! was never put, was deleted, or its age reached the limit; of elements, all there from the start, that the index is
//! not below the capacity; of targets of redirects, that the host has set nothing. Which free number a lease gives is
//! not defined: it is a symbol within the object's range, and absent before. Of prefixes only looking up has a meaning
//! here: two keys may find one entry, which key equality does not say (exec/calls/prefix.rs follows changes of them).
//! Of a classifier only the class is asked for, which the rules of the host say: a symbol below the number of classes.
//! Keys of a sketch share counters, so that every two accesses may be to the same place; additions commute, an
//! addition's answer does not. Two keys of a map of maps may have the same map, so a map that was found is the number
//! that says which it is, and the entries in it have that number before their keys.

use millrace_object::contract::Act;
use millrace_object::helper::{
    ALLOCATOR_FREE, ALLOCATOR_GET, ALLOCATOR_LEASE, ALLOCATOR_REFRESH, CLASSIFY, DISTRIBUTED_ADD,
    DISTRIBUTED_MAX, DISTRIBUTED_OR, DISTRIBUTED_READ, Helper, LPM_GET, MAP_DELETE,
    MAP_DELETE_ELEM, MAP_GET, MAP_LOOKUP_ELEM, MAP_PUT, MAP_REFRESH, MAP_UPDATE_ELEM, SKETCH_ADD,
    SKETCH_COUNT, VECTOR_AT,
};
use millrace_object::state::{Addressing, StateKind};

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
    /// a number that packets add to, which the model ties to nothing
    Member,
    /// 0
    Nothing,
    /// a class: a number below the object's number of classes, one for equal keys
    Class,
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

/// The helpers that are about an entry.
const MEANINGS: &[(&Helper, Address, Answer)] = &[
    (&MAP_LOOKUP_ELEM, Address::Key, Answer::Value),
    (&MAP_UPDATE_ELEM, Address::Key, Answer::Status),
    (&MAP_DELETE_ELEM, Address::Key, Answer::Deleted),
    (&MAP_GET, Address::Key, Answer::Value),
    (&MAP_REFRESH, Address::Key, Answer::Value),
    (&MAP_PUT, Address::Key, Answer::Stored),
    (&MAP_DELETE, Address::Key, Answer::Removed),
    (&VECTOR_AT, Address::Number, Answer::Value),
    (&ALLOCATOR_LEASE, Address::New, Answer::Leased),
    (&ALLOCATOR_GET, Address::Number, Answer::Value),
    (&ALLOCATOR_REFRESH, Address::Number, Answer::Value),
    (&ALLOCATOR_FREE, Address::Number, Answer::Removed),
    (&SKETCH_COUNT, Address::Key, Answer::Estimate),
    (&SKETCH_ADD, Address::Key, Answer::Estimate),
    (&LPM_GET, Address::Key, Answer::Value),
    (&CLASSIFY, Address::Key, Answer::Class),
    (&DISTRIBUTED_ADD, Address::Number, Answer::Nothing),
    (&DISTRIBUTED_MAX, Address::Number, Answer::Nothing),
    (&DISTRIBUTED_OR, Address::Number, Answer::Nothing),
    (&DISTRIBUTED_READ, Address::Number, Answer::Member),
];

/// Effect of a helper on an object of this kind; none where it is not listed here.
#[must_use]
pub fn meaning(kind: &StateKind, helper: &Helper) -> Option<Meaning> {
    let does = kind.does(helper)?;
    let (helper, address, answer) = MEANINGS.iter().find(|m| m.0 == helper)?;
    let answer = match answer {
        Answer::Value if kind.has_all() => Answer::Element,
        Answer::Value if kind.holds_maps() => Answer::Map,
        Answer::Deleted if kind.has_all() => Answer::Refused,
        other => *other,
    };
    let followed = kind.addressing != Addressing::Prefix || does.looks();
    followed.then_some(Meaning {
        helper: helper.name,
        effect: does.act.into(),
        address: *address,
        answer,
    })
}

/// Upper bound of a helper's effect on an object, where nothing is known of the path.
#[must_use]
pub fn at_most(kind: &StateKind, helper: &Helper) -> Effect {
    let does = kind.does(helper);
    does.map_or(Effect::Write, |d| d.act.into())
}

impl From<Act> for Effect {
    fn from(act: Act) -> Self {
        match act {
            Act::Look => Self::Read,
            Act::Touch => Self::Refresh,
            Act::Add => Self::Add,
            Act::Write => Self::Write,
        }
    }
}
