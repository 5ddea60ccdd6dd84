//! All state of a bucket of the indirection table.

use std::sync::Arc;

use millrace_place::{Held, Placement};
use millrace_steer::buckets::{Buckets, Numbered};

use super::remove;
use crate::module::{Instance, Module, ObjectInfo, Stamped};
use crate::replica::Listing;
use crate::share::Share;

/// Objects of a function whose content goes with a bucket, by their indexes in the module. Of all others workers have copies, or one in
/// common, or parts whose sum counts.
#[derive(Clone, Debug)]
pub struct Contents {
    /// which packets and entries a bucket has
    pub buckets: Arc<dyn Buckets>,
    /// tables of entries by key
    pub tables: Arc<[usize]>,
    /// objects of which each worker has all elements: those go that packets have changed
    pub elements: Arc<[usize]>,
    /// allocators whose numbers come home by buckets
    pub leases: Arc<[usize]>,
}

/// The receiver has no room for an entry of this object; it is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker has no room for another entry of object {object}")]
pub struct Full {
    /// by its index in the module
    pub object: usize,
}

impl Contents {
    /// Of a module on several workers; none where no buckets of it move.
    #[must_use]
    pub fn of(placement: &Placement, module: &Module) -> Option<Self> {
        let buckets = placement.buckets.clone()?;
        let of = |wanted: &dyn Fn(&ObjectInfo, bool) -> bool| -> Arc<[usize]> {
            let objects = module.objects().iter().enumerate();
            let wanted = objects.filter(|(_, info)| {
                let place = placement.of(&info.name);
                let divided = place.filter(|p| p.held == Held::Divided);
                divided.is_some_and(|p| wanted(info, p.home.is_some()))
            });
            wanted.map(|(at, _)| at).collect()
        };
        Some(Self {
            tables: of(&|info, home| !home && !info.kind.has_all()),
            elements: of(&|info, home| !home && info.kind.has_all()),
            leases: of(&|_, home| home),
            buckets,
        })
    }

    /// Begins to look for the entries of these buckets, a few places after each burst, unless it does.
    pub fn begin(
        &self,
        from: &mut Instance,
        listing: &mut Listing,
        buckets: impl IntoIterator<Item = u32>,
    ) {
        let keys = buckets.into_iter().map(Numbered::key).collect();
        listing.begin(from, &self.tables, keys);
    }

    /// Whether all places were looked at for a bucket.
    #[must_use]
    pub fn looked(&self, listing: &Listing, bucket: u32) -> bool {
        listing.through_for(Numbered::key(bucket), self.tables.len())
    }

    /// Looks at some places more; whether none is left.
    pub fn step(&self, from: &mut Instance, listing: &mut Listing) -> bool {
        listing.step(from, &self.tables, &Numbered(self.buckets.as_ref()));
        listing.through(self.tables.len())
    }

    /// Takes the content of a bucket out of an instance; `listing` may have looked for its entries. What the elements of an object held before
    /// the first packet stands in `shares`.
    pub fn take(
        &self,
        from: &mut Instance,
        listing: &mut Listing,
        (bucket, shares): (u32, &[Share]),
    ) -> Vec<(usize, Stamped)> {
        let (keys, key) = (Numbered(self.buckets.as_ref()), Numbered::key(bucket));
        let listed = listing.end(from, &self.tables, (&keys, key));
        let mut all = match listed {
            Some(all) => all,
            None => super::found(from, &self.tables, &keys, key),
        };
        take_found(from, &mut all);
        let bucket_of = |object: usize, bytes: &[u8]| self.buckets.entry(object, bytes);
        let wanted = |object: usize, bytes: &[u8]| bucket_of(object, bytes) == Some(bucket);
        self.take_elements(from, shares, &mut all, &wanted);
        self.take_leases(from, bucket..bucket + 1, &mut all);
        all
    }

    /// Takes the content of all buckets out of an instance.
    pub fn take_all(&self, from: &mut Instance, shares: &[Share]) -> Vec<(usize, Stamped)> {
        let mut all = Vec::new();
        for object in self.tables.iter() {
            let found = from.select(*object, &mut |_| true).unwrap_or_default();
            all.extend(found.into_iter().map(|e| (*object, e)));
        }
        take_found(from, &mut all);
        self.take_elements(from, shares, &mut all, &|_, _| true);
        self.take_leases(from, 0..u32::MAX, &mut all);
        all
    }

    fn take_elements(
        &self,
        from: &mut Instance,
        shares: &[Share],
        all: &mut Vec<(usize, Stamped)>,
        wanted: &dyn Fn(usize, &[u8]) -> bool,
    ) {
        for object in self.elements.iter() {
            let Some(share) = shares.get(*object) else {
                continue;
            };
            let mut changed = Vec::new();
            let _ = from.list(*object, 0..u64::MAX, &mut |e| {
                if share.before.differs(e.key, e.value) && wanted(*object, e.key) {
                    changed.push(e.kept());
                }
            });
            for element in &changed {
                let before = share.before.of(&element.key, element.value.len());
                let _ = from.set(*object, &element.key, &before, 0);
            }
            all.extend(changed.into_iter().map(|e| (*object, e)));
        }
    }

    /// Forgets the numbers of a bucket that are still here while another machine has had it.
    pub fn take_old_leases(&self, from: &mut Instance, bucket: u32) {
        self.take_leases(from, bucket..bucket + 1, &mut Vec::new());
    }

    fn take_leases(
        &self,
        from: &mut Instance,
        buckets: std::ops::Range<u32>,
        all: &mut Vec<(usize, Stamped)>,
    ) {
        for object in self.leases.iter() {
            let mut leased = Vec::new();
            let places = u64::from(buckets.start)..u64::from(buckets.end);
            let _ = from.list(*object, places, &mut |e| leased.push((*object, e.kept())));
            remove(from, &leased);
            all.append(&mut leased);
        }
    }

    /// Puts the content of a bucket into an instance at `now`, ns.
    ///
    /// # Errors
    /// An object has no room for all of it; the instance is as it was then.
    pub fn put(
        &self,
        to: &mut Instance,
        entries: &[(usize, Stamped)],
        now: u64,
    ) -> Result<(), Full> {
        for (at, (object, entry)) in entries.iter().enumerate() {
            if !matches!(to.put(*object, entry, now.max(entry.stamp)), Ok(true)) {
                remove(to, entries.get(..at).unwrap_or_default());
                return Err(Full { object: *object });
            }
        }
        Ok(())
    }

    /// Free places of an instance for entries of a bucket, by object: where there are fewer than it would get, it is full.
    #[must_use]
    pub fn room(&self, to: &mut Instance, entries: &[(usize, Stamped)]) -> Option<Full> {
        let tables = self.tables.iter();
        let full = tables.filter(|object| {
            let wanted = entries.iter().filter(|(o, _)| o == *object).count() as u64;
            let used = to.used(**object).unwrap_or(0);
            used + wanted > to.capacity(**object)
        });
        full.map(|object| Full { object: *object }).next()
    }
}

/// Takes entries of tables that were found there out of an instance, and puts them in the order in which their timers fire.
fn take_found(from: &mut Instance, all: &mut [(usize, Stamped)]) {
    all.sort_by_key(|(_, e)| e.rest.turn());
    remove(from, all);
}
