//! The whole of a function's placement.

use std::sync::Arc;

use millrace_object::contract::Holds;
use millrace_object::program::StateObject;
use millrace_steer::Steering;
use millrace_steer::buckets::Buckets;
use millrace_steer::hybrid::Keys;

use crate::held::Held;
use crate::owning::Owning;
use crate::strategy::Strategy;

/// Bytes of a key and a value together, at most, of an object whose changes are noted: as many as fit a frame to another machine.
pub const MOST_NOTED: u64 = 184 << 10;

/// How a function runs on several workers.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// its objects, in the program's order
    pub objects: Vec<Place>,
    /// who gets the packets of each port, the last one for ports behind it; empty: any packet may go anywhere
    pub steering: Vec<Steering>,
    /// how far apart in the packets' time workers may be, ns; none: as far as they like
    pub apart: Option<u64>,
    /// over how many indexes of the indirection table the numbers of allocators are told apart which
    /// [`Place::home`] names, a power of two; 0 where there are none
    pub indexes: u32,
    /// a few heavy keys are replicated; what is divided has the others
    pub elephants: Option<Arc<Elephants>>,
    /// which worker has an entry of a divided object that is set from outside, where keys tell
    pub owning: Option<Arc<dyn Owning>>,
    /// the buckets of the indirection table, where these may change their workers while packets come
    pub buckets: Option<Arc<dyn Buckets>>,
    /// why they may not, where that is known
    pub stays: Option<String>,
    /// what changes of divided objects is noted, for a copy on another machine; entries have at most [`MOST_NOTED`] bytes then
    pub noted: bool,
}

/// Replication of a few heavy keys beside parts of the rest.
pub struct Elephants {
    /// how objects are held in what is replicated, which each worker has beside its part
    pub replicas: Arc<Placement>,
    /// which packets and entries a key has
    pub keys: Arc<dyn Keys>,
    /// what a row of another worker's packet costs, as a part of what a packet does with receiving and sending it
    pub row: f64,
}

impl std::fmt::Debug for Elephants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elephants")
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

/// How one state object lives on several workers.
#[derive(Clone)]
pub struct Place {
    /// the author's name for it
    pub name: String,
    /// how it is held
    pub held: Held,
    /// its declared capacity
    pub whole: u64,
    /// the capacity that each worker's instance has
    pub part: u64,
    /// of an allocator whose numbers are told apart: for each of them the index of the indirection table that brings its
    /// packets to the worker which leases it. Secret, as the steering's key follows from it.
    pub home: Option<Vec<u32>>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("name", &self.name)
            .field("held", &self.held)
            .field("whole", &self.whole)
            .field("part", &self.part)
            .field("comes_home", &self.home.is_some())
            .finish()
    }
}

impl Place {
    /// An object that is held so, with its whole capacity at each worker.
    #[must_use]
    pub fn new(object: &StateObject, held: Held) -> Self {
        Self {
            name: object.name.clone(),
            held,
            whole: object.capacity,
            part: object.capacity,
            home: None,
        }
    }
}

impl Placement {
    /// Objects that are held so, in the program's order, each divided one in even parts; any packet may go anywhere.
    #[must_use]
    pub fn even(objects: &[StateObject], workers: u32, held: Vec<Held>) -> Self {
        let objects = objects.iter().zip(held);
        let place = |(object, held): (&StateObject, Held)| {
            let divided = held == Held::Divided && has_room(object);
            let place = Place::new(object, held);
            Place {
                part: match divided {
                    true => object.capacity.div_ceil(u64::from(workers.max(1))).max(1),
                    false => place.part,
                },
                ..place
            }
        };
        Self {
            objects: objects.map(place).collect(),
            ..Self::default()
        }
    }

    /// Objects of these names are locked, whatever their sizes are; nothing is said of others.
    #[must_use]
    pub fn locked<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::holding(names.into_iter().map(|name| (name, Held::Locked)))
    }

    /// Objects of these names are held so, whatever their sizes are; nothing is said of others.
    #[must_use]
    pub fn holding<'a>(names: impl IntoIterator<Item = (&'a str, Held)>) -> Self {
        let place = |(name, held): (&str, Held)| Place {
            name: name.to_owned(),
            held,
            whole: 0,
            part: 0,
            home: None,
        };
        Self {
            objects: names.into_iter().map(place).collect(),
            ..Self::default()
        }
    }

    /// How the whole runs.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        if self.elephants.is_some() || (self.replicates() && self.divides()) {
            return Strategy::Hybrid;
        }
        Strategy::of(self.objects.iter().map(|o| o.held.treatment()))
    }

    /// The place of an object of this name.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&Place> {
        self.objects.iter().find(|o| o.name == name)
    }

    /// How an object of this name is held; one that is not named is copied.
    #[must_use]
    pub fn held(&self, name: &str) -> Held {
        self.of(name).map_or(Held::Copied, |o| o.held.clone())
    }

    /// The names of objects that are held as is wanted, in the program's order.
    pub fn names(&self, wanted: impl Fn(&Held) -> bool) -> impl Iterator<Item = &str> {
        let objects = self.objects.iter().filter(move |o| wanted(&o.held));
        objects.map(|o| o.name.as_str())
    }

    /// Whether workers have any object in common, under the lock or in transactions.
    #[must_use]
    pub fn locks(&self) -> bool {
        self.objects.iter().any(|o| o.held.shared())
    }

    /// Whether packets read parts of other workers.
    #[must_use]
    pub fn stale(&self) -> bool {
        self.objects.iter().any(|o| o.held.staleness().is_some())
    }

    /// Whether packets are transactions.
    #[must_use]
    pub fn transacts(&self) -> bool {
        self.objects.iter().any(|o| o.held == Held::Transacted)
    }

    /// Whether each worker has a replica of any object.
    #[must_use]
    pub fn replicates(&self) -> bool {
        self.objects.iter().any(|o| o.held == Held::Replicated)
    }

    /// Whether each worker has a part of any object.
    #[must_use]
    pub fn divides(&self) -> bool {
        self.objects.iter().any(|o| o.held == Held::Divided)
    }

    /// Objects of which each worker's instance has another capacity than the declared one, and which.
    #[must_use]
    pub fn parts(&self) -> Vec<(String, u64)> {
        let parts = self.objects.iter().filter(|o| o.part != o.whole);
        parts.map(|o| (o.name.clone(), o.part)).collect()
    }

    /// Declared capacities of the objects of which each worker's instance has another one.
    #[must_use]
    pub fn whole(&self) -> Vec<(String, u64)> {
        let parts = self.objects.iter().filter(|o| o.part != o.whole);
        parts.map(|o| (o.name.clone(), o.whole)).collect()
    }

    /// The names of allocators whose numbers come home.
    pub fn coming_home(&self) -> impl Iterator<Item = &str> {
        let objects = self.objects.iter().filter(|o| o.home.is_some());
        objects.map(|o| o.name.as_str())
    }

    /// The steering of each of `ports` ports; none where any packet may go anywhere.
    #[must_use]
    pub fn steering(&self, ports: usize) -> Option<Vec<Steering>> {
        let last = self.steering.last()?;
        let of = |port: usize| self.steering.get(port).unwrap_or(last).clone();
        Some((0..ports).map(of).collect())
    }

    /// Whether workers get the same packets by this as by another one, whatever their tables are.
    #[must_use]
    pub fn steers_as(&self, other: &Self) -> bool {
        let ports = self.steering.len().max(other.steering.len());
        let both = self.steering(ports).zip(other.steering(ports));
        both.is_some_and(|(own, theirs)| {
            own.iter()
                .zip(&theirs)
                .all(|(own, theirs)| own.hashes_as(theirs))
        })
    }

    /// The worker of each bucket, of so many workers; none where there are no buckets that could move, or the tables of ports lead otherwise.
    #[must_use]
    pub fn table(&self, workers: u32) -> Option<Vec<u32>> {
        let count = self.buckets.as_ref()?.count() as usize;
        let mut tables = self.steering.iter().flat_map(|s| {
            let software = s.software.values();
            software.chain([&s.nic]).map(millrace_steer::Rss::table)
        });
        let first = tables.clone().next()?.get(..count)?;
        let alike = |table: &[u32]| table.chunks(count).all(|part| part == first);
        let worker = |queue: &u32| queue % workers.max(1);
        tables
            .all(alike)
            .then(|| first.iter().map(worker).collect())
    }

    /// The same numbers come home, and nothing is locked: for one worker that is to lease as these do.
    #[must_use]
    pub fn for_one(&self) -> Self {
        let alone = |place: &Place| Place {
            held: Held::Alone,
            part: place.whole,
            ..place.clone()
        };
        Self {
            objects: self.objects.iter().map(alone).collect(),
            apart: None,
            elephants: None,
            ..self.clone()
        }
    }
}

/// Whether the entries of an object are counted, so that a capacity can be divided: an object that is addressed by an
/// index has an element for each of its indices everywhere.
#[must_use]
pub fn has_room(object: &StateObject) -> bool {
    let entries = object.kind.holds == Holds::Values && !object.kind.has_all();
    entries && object.nesting.is_none() && object.initial.is_none()
}

#[cfg(test)]
mod tests {
    use millrace_object::state::{StateKind, array, map, percpu_array};

    use super::*;
    use crate::{Treatment, Word};

    fn objects() -> Vec<StateObject> {
        let kinds = [&map::KIND, &array::KIND, &percpu_array::KIND];
        let object = |kind: &'static StateKind| StateObject::new(kind.name, kind, 4, 8, 10);
        kinds.into_iter().map(object).collect()
    }

    #[test]
    fn entries_are_divided_evenly_and_elements_are_not() {
        let objects = objects();
        let held = objects.iter().map(Held::where_all_is_divided);
        let placement = Placement::even(&objects, 4, held.collect());
        let own = Held::Own { latest: false };
        assert_eq!(placement.held("percpu_array"), own);
        assert_eq!(placement.parts(), [("map".to_owned(), 3)]);
        assert_eq!(placement.strategy(), Strategy::Shard);
        assert!(!placement.locks() && placement.steering(2).is_none());
        let divided: Vec<_> = placement.names(|h| *h == Held::Divided).collect();
        assert_eq!(divided, ["map", "array"]);
        assert_eq!(placement.held("no such object"), Held::Copied);
    }

    #[test]
    fn the_homes_of_numbers_are_shown_nowhere() {
        let mut placement = Placement::even(&objects(), 2, vec![Held::Locked; 3]);
        assert!(placement.locks());
        if let Some(place) = placement.objects.first_mut() {
            place.home = Some(vec![4711; 10]);
        }
        assert!(!format!("{placement:?}").contains("4711"));
        let one = placement.for_one();
        assert!(!one.locks() && one.parts().is_empty());
        assert_eq!(one.coming_home().collect::<Vec<_>>(), ["map"]);
        assert!(
            one.objects
                .iter()
                .all(|o| o.held.treatment() == Treatment::Alone)
        );
    }

    #[test]
    fn what_is_merged_says_which_numbers() {
        let word = Word {
            offset: 8,
            bytes: 4,
            low: 0,
        };
        let held = Held::merged(&[word]);
        assert!(held.parted() && held.treatment() == Treatment::Merge);
    }
}
