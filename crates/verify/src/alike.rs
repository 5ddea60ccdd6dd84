//! Leases that a comparison does not see by itself: of numbers that a packet already had, and of values that keep leased numbers themselves.

use crate::compare::{Alike, Pair};
use crate::lane::{Done, Lane};
use crate::outcome::Written;
use crate::state::value::same_but;

/// Leases that stand in each other's values, at most: as many as a row has elements.
const DEPTH: u32 = 16;
/// Numbers that are looked up for a packet, at most: a program may keep numbers in values so that each leads to many more.
pub const LOOKS: usize = 4096;

/// Adds to what a lane did with a packet the leases of numbers that stood there before, by chance, where the other lane wrote its own
/// for the same value: numbers that workers share are not looked up for each packet ([`crate::copy`]).
pub fn unchanged(written: &Done, done: &mut Done, lane: &mut Lane<'_>, now: u64) {
    let outcome = &done.outcome;
    let mut more = Vec::new();
    let leases = written.outcome.leases.iter();
    for lease in leases.filter(|l| l.changed && l.bytes > 1) {
        let there = lease.at..lease.at + lease.bytes;
        let here = outcome.bytes.get(there.clone());
        let Some(here) = here.filter(|h| done.given.get(there) == Some(h)) else {
            continue;
        };
        let number = here.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
        if let Some(value) = lane.leased(outcome.worker, lease.object, number, now) {
            more.push(Written {
                number,
                value,
                changed: false,
                ..lease.clone()
            });
        }
    }
    done.outcome.leases.extend(more);
}

/// Both lanes while leases of a packet are looked at.
pub struct Lanes<'l, 'a> {
    /// the sequential side
    pub sequential: &'l mut Lane<'a>,
    /// the parallel side
    pub parallel: &'l mut Lane<'a>,
    /// the allocators, by their index in the program
    pub allocators: Vec<usize>,
    /// ns
    pub now: u64,
    /// numbers that are looked up yet, at most
    pub looks: usize,
}

impl Lanes<'_, '_> {
    /// The values of leases that both sides wrote at one place of a packet, and that are the same up to leases of other allocators, which are
    /// told, too.
    pub fn alike(&mut self, sequential: &Done, parallel: &Done) -> (Alike, Vec<Pair>) {
        let (mut alike, mut inner) = (Alike::new(), Vec::new());
        for a in &sequential.outcome.leases {
            for b in &parallel.outcome.leases {
                let one = (a.at, a.object, a.bytes) == (b.at, b.object, b.bytes);
                if !one || a.value == b.value {
                    continue;
                }
                let worker = parallel.outcome.worker;
                let mut found = Vec::new();
                if self.same(&a.value, &b.value, worker, DEPTH, &mut found) {
                    alike.insert((a.value.clone(), b.value.clone()));
                    inner.append(&mut found);
                }
            }
        }
        (alike, inner)
    }

    fn same(
        &mut self,
        here: &[u8],
        there: &[u8],
        worker: u32,
        depth: u32,
        found: &mut Vec<Pair>,
    ) -> bool {
        same_but(here, there, |a, b| {
            let depth = depth.checked_sub(1);
            depth.is_some_and(|depth| self.stands((a, b), worker, depth, found))
        })
    }

    /// Whether both numbers are leased by one allocator for the same value.
    fn stands(
        &mut self,
        (here, there): (u64, u64),
        worker: u32,
        depth: u32,
        found: &mut Vec<Pair>,
    ) -> bool {
        for object in self.allocators.clone() {
            let Some(left) = self.looks.checked_sub(1) else {
                return false;
            };
            self.looks = left;
            let value = self.sequential.leased(0, object, here, self.now);
            let kept = self.parallel.leased(worker, object, there, self.now);
            let Some((value, kept)) = value.zip(kept) else {
                continue;
            };
            let before = found.len();
            if self.same(&value, &kept, worker, depth, found) {
                found.push(Pair {
                    object,
                    sequential: here,
                    worker,
                    parallel: there,
                    value,
                    kept,
                });
                return true;
            }
            // What a part of it would have shown.
            found.truncate(before);
        }
        false
    }
}
