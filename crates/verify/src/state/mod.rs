//! The state at the end: what all workers hold together, against what the sequential program holds.
//!
//! Keyed objects are compared as sets of entries, objects with an index element by element, allocators up to
//! which numbers they leased. Ages cannot be read, but they show: entries are compared again at later moments,
//! when some of them have expired.

mod index;
mod keyed;
mod leased;
mod lying;
mod outside;
mod renamed;
pub(crate) mod value;

use std::collections::BTreeMap;

use millrace_dataplane::Share;
use millrace_dataplane::module::KeyValue;
use millrace_object::program::{Program, StateObject};
use millrace_object::state::Addressing;
use millrace_place::Held;

use crate::deal::{Deal, private};
use crate::lane::Lane;
use crate::lease::Bijection;
pub use leased::Numbers;
pub use lying::{Elsewhere, Lying, lying};

/// An entry that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryDifference {
    /// the object, by its index in the program
    pub object: usize,
    /// the entry's key
    pub key: Vec<u8>,
    /// its value on the sequential side
    pub sequential: Option<Vec<u8>>,
    /// the workers that have it, and their values
    pub parallel: Vec<(u32, Vec<u8>)>,
    /// how long after the last packet it differs, ns: entries expire
    pub later: u64,
}

/// An object that was not compared.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct NotCompared {
    /// the object
    pub object: String,
    /// why
    pub why: String,
}

/// Result of comparing all objects.
#[derive(Default, Debug)]
pub struct StateFound {
    /// entries that differ, at most [`MOST`] of an object
    pub differences: Vec<EntryDifference>,
    /// how many differ
    pub differing: u64,
    /// entries that were compared
    pub entries: u64,
    /// objects that were not
    pub not_compared: Vec<NotCompared>,
}

/// Differences that are kept of an object.
pub const MOST: usize = 8;
/// At how many moments entries that expire are compared, from the end of the trace to the end of their lives.
const MOMENTS: u64 = 4;

/// Elements of objects that are addressed by an index and of single values, as they are before the first
/// packet; empty for all other objects.
pub type Base = Vec<Vec<KeyValue>>;

/// Requirements on the state before the first packet.
///
/// The elements of what cannot be listed are left out; the comparison will say so.
#[must_use]
pub fn base(program: &Program, deal: &Deal<'_>, lane: &mut Lane<'_>, now: u64) -> Base {
    let objects = program.objects.iter().enumerate();
    let Some(copy) = lane.copies.first_mut() else {
        return Vec::new();
    };
    objects
        .map(|(i, o)| {
            let indexed = o.kind.addressing == Addressing::Index || o.kind.is_global();
            let held = deal.held(i);
            let compared = matches!(
                held,
                Held::Divided | Held::Alone | Held::Locked | Held::Transacted | Held::Replicated
            ) && private(held, o).is_none();
            let needed = compared && indexed;
            if needed {
                copy.entries(i, now).unwrap_or_default()
            } else {
                Vec::new()
            }
        })
        .collect()
}

/// Content of an object on both sides at one moment.
pub(crate) struct Holding {
    pub object: usize,
    pub later: u64,
    pub sequential: BTreeMap<Vec<u8>, Vec<u8>>,
    /// by key, the workers that have it
    pub parallel: BTreeMap<Vec<u8>, Vec<(u32, Vec<u8>)>>,
    pub workers: u32,
    /// all workers have one of it, which is seen through the first
    pub shared: bool,
}

impl Holding {
    pub fn differs(&self, key: &[u8]) -> EntryDifference {
        EntryDifference {
            object: self.object,
            key: key.to_vec(),
            sequential: self.sequential.get(key).cloned(),
            parallel: self.parallel.get(key).cloned().unwrap_or_default(),
            later: self.later,
        }
    }

    /// Whose numbers are in an entry that a worker has.
    pub fn whose(&self, worker: u32) -> Option<u32> {
        (!self.shared).then_some(worker)
    }

    /// Every key of either side.
    pub fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        let only = self.parallel.keys();
        let only = only.filter(|k| !self.sequential.contains_key(*k));
        self.sequential.keys().chain(only)
    }
}

/// Compares all objects after the last packet, at `now` (ns).
pub fn compare(
    program: &Program,
    (deal, shares): (&Deal<'_>, &[Share]),
    base: &Base,
    sequential: &mut Lane<'_>,
    parallel: &mut Lane<'_>,
    bijection: &Bijection,
    now: u64,
) -> StateFound {
    let mut found = StateFound::default();
    // Allocators first: what leases stand for each other decides about the keys and values of all other objects.
    let is_allocator = |o: &StateObject| o.kind.addressing == Addressing::Lease;
    let allocators = program.objects.iter().filter(|o| is_allocator(o));
    let mut numbers = Numbers::new(allocators.map(|o| o.first), parallel.copies.len() as u32);
    let order = program.objects.iter().enumerate();
    let (first, rest): (Vec<_>, Vec<_>) = order.partition(|(_, o)| is_allocator(o));
    for (index, object) in first.into_iter().chain(rest) {
        let how = deal.held(index);
        if let Some(why) = private(how, object) {
            found.not_compared.push(NotCompared {
                object: object.name.clone(),
                why: why.to_owned(),
            });
            continue;
        }
        if !object.kind.lists() {
            found.not_compared.push(NotCompared {
                object: object.name.clone(),
                why: "it does not list its keys; what it answered showed in the verdicts".into(),
            });
            continue;
        }
        if object.is_shape() || (object.kind.is_global() && object.read_only) {
            continue;
        }
        let base = base.get(index).map_or(&[][..], Vec::as_slice);
        let mut seen = Seen {
            object,
            how,
            share: shares.get(index),
            base,
            bijection,
            numbers: &mut numbers,
        };
        for moment in 0..if object.expire_after > 0 { MOMENTS } else { 1 } {
            let later = object.expire_after / MOMENTS * moment;
            let holding = match holding((index, how), later, sequential, parallel, now) {
                Ok(holding) => holding,
                Err(why) => {
                    let object = object.name.clone();
                    found.not_compared.push(NotCompared { object, why });
                    break;
                }
            };
            found.entries += holding.sequential.len() as u64;
            let mut differences = seen.compare(&holding);
            if let Some(share) = seen.share {
                let other = |d: &EntryDifference| !differences.iter().any(|o| o.key == d.key);
                let more = outside::compare(share, &holding, seen.numbers).into_iter();
                let more: Vec<_> = more.filter(other).collect();
                differences.extend(more);
            }
            found.differing += differences.len() as u64;
            let any = !differences.is_empty();
            found.differences.extend(differences.into_iter().take(MOST));
            if any {
                break;
            }
        }
    }
    found
}

/// An object, and what decides how it is compared.
struct Seen<'a> {
    object: &'a StateObject,
    how: &'a Held,
    share: Option<&'a Share>,
    base: &'a [KeyValue],
    bijection: &'a Bijection,
    numbers: &'a mut Numbers,
}

impl Seen<'_> {
    fn compare(&mut self, holding: &Holding) -> Vec<EntryDifference> {
        let single = self.object.kind.is_global();
        match (self.how, self.object.kind.addressing) {
            (Held::Own { .. }, _) => Vec::new(),
            // What a reader sees (`outside.rs`) is all that can be said of the parts: the sums.
            (Held::Merged { .. }, _) => Vec::new(),
            (Held::Copied, _) => keyed::same_everywhere(holding),
            (
                Held::Divided | Held::Alone | Held::Locked | Held::Transacted | Held::Replicated,
                Addressing::Lease,
            ) => leased::compare(holding, self.bijection, self.numbers),
            (
                Held::Divided | Held::Alone | Held::Locked | Held::Transacted | Held::Replicated,
                Addressing::Index,
            ) => index::compare(holding, self.base, self.numbers),
            (
                Held::Divided | Held::Alone | Held::Locked | Held::Transacted | Held::Replicated,
                _,
            ) if single => index::compare(holding, self.base, self.numbers),
            (
                Held::Divided | Held::Alone | Held::Locked | Held::Transacted | Held::Replicated,
                Addressing::Key | Addressing::Prefix | Addressing::None,
            ) => keyed::compare(holding, self.numbers),
        }
    }
}

fn holding(
    (object, how): (usize, &Held),
    later: u64,
    sequential: &mut Lane<'_>,
    parallel: &mut Lane<'_>,
    now: u64,
) -> Result<Holding, String> {
    let now = now.saturating_add(later);
    let none = || "it has no copies".to_owned();
    let one = sequential.copies.first_mut().ok_or_else(none)?;
    let mut holding = Holding {
        object,
        later,
        sequential: by_key(one.entries(object, now).map_err(|e| e.to_string())?),
        parallel: BTreeMap::new(),
        workers: parallel.copies.len() as u32,
        shared: how.shared(),
    };
    // What is one for all workers is seen through any of them, and replicas are compared with each other (`replica.rs`).
    let copies = match how {
        Held::Locked | Held::Transacted | Held::Replicated => 1,
        _ => parallel.copies.len(),
    };
    for (worker, copy) in parallel.copies.iter_mut().enumerate().take(copies) {
        for (key, value) in by_key(copy.entries(object, now).map_err(|e| e.to_string())?) {
            let holders = holding.parallel.entry(key).or_default();
            holders.push((worker as u32, value));
        }
    }
    Ok(holding)
}

/// Entries by key. Prefixes of a handler's LPM are listed by their address, so that several have one key: what they hold is one value then,
/// as they may be listed in any order.
fn by_key(entries: Vec<KeyValue>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (key, value) in entries {
        all.entry(key).or_default().push(value);
    }
    let one = |mut values: Vec<Vec<u8>>| {
        values.sort();
        values.concat()
    };
    all.into_iter()
        .map(|(k, values)| (k, one(values)))
        .collect()
}
