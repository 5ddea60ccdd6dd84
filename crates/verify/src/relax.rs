//! Differences that come of dividing memory, and how that is proved rather than assumed.
//!
//! A worker has a part of each table, so that its part may be full while others have room; each worker evicts
//! from what it has seen; a sketch that sees a part of the keys confuses fewer of them. To tell such a
//! difference from a defect both sides run once more beside the first two, with memory for everything and
//! nothing else changed. If these agree on a packet on which the others do not, then one of the others differs
//! from its own run with ample memory, and memory is the only thing that differs between those: the difference
//! comes of it. The name is then that of the object that had become full.

use std::collections::{BTreeMap, BTreeSet};

use millrace_object::contract::Relaxed;
use millrace_object::program::{Program, StateObject};
use millrace_place::Held;
use millrace_place::placement::has_room;

use crate::copy::Copy;
use crate::deal::Deal;
use crate::sides::Sides;

/// The most entries that an object is given room for.
const MOST_ENTRIES: u64 = 1 << 22;
/// Columns of a sketch in which keys hardly ever meet in all rows.
const COLUMNS: u64 = 1 << 18;
/// Bytes that the state of both sides may take together.
const MOST_BYTES: u64 = 4 << 30;
/// How often it is counted whether an object is full: counting is a walk over its entries.
const LOOKS: u32 = 4096;

/// Whether a part of the memory may make a difference.
#[must_use]
pub fn may_differ(program: &Program, deal: &Deal<'_>) -> bool {
    deal.workers > 1 && objects(program, deal).next().is_some()
}

/// The objects of which each worker has a part, and whose size counts.
fn objects<'a>(
    program: &'a Program,
    deal: &'a Deal<'_>,
) -> impl Iterator<Item = (usize, &'a StateObject)> {
    let all = program.objects.iter().enumerate();
    all.filter(|(i, o)| match deal.held(*i) {
        Held::Divided => has_room(o) || o.kind.estimates(),
        // Each worker has room for all that one core has.
        Held::Merged { .. } => has_room(o),
        _ => false,
    })
}

/// Capacities with room for whatever this many packets put there.
///
/// # Errors
/// How much memory that would take.
pub fn ample(
    program: &Program,
    deal: &Deal<'_>,
    packets: u64,
) -> Result<Vec<(String, u64)>, String> {
    let mut capacities = Vec::new();
    let mut bytes = 0_u64;
    for (index, object) in program.objects.iter().enumerate() {
        let mut larger = object.clone();
        let sized = objects(program, deal).any(|(i, _)| i == index);
        // The numbers that an allocator leases are part of what the program says.
        if sized && !object.kind.leases() {
            let entries = packets.saturating_mul(2).min(MOST_ENTRIES);
            let wanted = if object.kind.estimates() {
                COLUMNS
            } else {
                entries
            };
            larger.capacity = object.capacity.max(wanted);
            if (larger.kind.validate)(&larger).is_err() {
                larger.capacity = object.capacity;
            }
            capacities.push((larger.name.clone(), larger.capacity));
        }
        let copies = u64::from(deal.workers) + 1;
        bytes = bytes.saturating_add(larger.bytes().saturating_mul(copies));
    }
    if bytes > MOST_BYTES {
        return Err(format!(
            "to tell whether differences come of divided memory would take {} MiB",
            bytes >> 20
        ));
    }
    Ok(capacities)
}

/// Objects that have become full, and the consequences.
#[derive(Default)]
pub struct Fullness {
    /// worker (none: the sequential side) and object
    full: BTreeSet<(Option<u32>, usize)>,
    looks: u32,
    /// by name: packets, entries
    pub counts: BTreeMap<&'static str, (u64, u64)>,
}

impl Fullness {
    /// The names of what explains a difference at a worker, at a time (ns); none if nothing there was full.
    pub fn names(
        &mut self,
        program: &Program,
        deal: &Deal<'_>,
        sides: &mut Sides<'_>,
        worker: u32,
        now: u64,
    ) -> BTreeSet<&'static str> {
        let mut names = BTreeSet::new();
        for (index, object) in objects(program, deal) {
            if object.kind.estimates() {
                continue;
            }
            let mut is = |place: Option<u32>, copy: Option<&mut Copy>, room: u64| {
                if self.full.contains(&(place, index)) {
                    return true;
                }
                if self.looks >= LOOKS {
                    return false;
                }
                self.looks += 1;
                let full = copy
                    .and_then(|c| c.count(index, now))
                    .is_some_and(|n| n >= room);
                if full {
                    self.full.insert((place, index));
                }
                full
            };
            let part = deal.part(object);
            // Of numbers that come home those of one index run out, whatever is left under others.
            if deal.placement.coming_home().any(|name| name == object.name) {
                let copy = sides.parallel.copies.get_mut(worker as usize);
                if copy.and_then(|c| c.full(index)).is_some_and(|n| n > 0) {
                    names.insert(Relaxed::Capacity.name());
                }
                continue;
            }
            let here = is(None, sides.sequential.copies.first_mut(), object.capacity);
            let copy = sides.parallel.copies.get_mut(worker as usize);
            if is(Some(worker), copy, part) || here {
                names.insert(object.kind.when_full().name());
            }
        }
        if names.is_empty() && objects(program, deal).any(|(_, o)| o.kind.estimates()) {
            names.insert(Relaxed::Collision.name());
        }
        names
    }

    /// Counts what these names explain.
    pub fn count(&mut self, names: &BTreeSet<&'static str>, packets: u64, entries: u64) {
        for name in names {
            let counts = self.counts.entry(name).or_default();
            counts.0 += packets;
            counts.1 += entries;
        }
    }
}

/// Whether an allocator of the sequential side has nothing left to lease.
pub fn exhausted(program: &Program, sides: &mut Sides<'_>, now: u64) -> Option<String> {
    let allocators = program.objects.iter().enumerate();
    let mut allocators = allocators.filter(|(_, o)| o.kind.leases());
    let copy = sides.sequential.copies.first_mut()?;
    let full = allocators.find(|(i, o)| copy.count(*i, now).is_some_and(|n| n >= o.capacity));
    full.map(|(_, o)| o.name.clone())
}
