//! Search for the entries of keys that will be promoted, a few places at a time between bursts.
//!
//! A promotion holds up its owner, and all others with it, while the owner looks for what its part has of the key: over a whole
//! table, milliseconds. So the sequencer announces a key some periods before its row, and the owner begins to look. It lists a bounded
//! number of places after each burst, and whatever was put since, which the table remembers (`list` of `fastpath/abi.h`). At the row
//! only the places that were found are looked at again, and those that are left.
//!
//! An announcement is a hint and no part of the protocol: whether it came, came late, or the table remembered too little, what is found
//! at the row is what a walk over all places finds there.

use millrace_steer::hybrid::{Key, Keys};

use crate::module::{Instance, Stamped};

/// Places that are listed after a burst: some microseconds if all are taken.
pub(super) const STEP: u64 = 1024;

/// What was found by now of some keys, announced together.
struct Walk {
    /// with the places of each, by object; some twice, some no longer theirs; in the order of keys
    keys: Vec<(Key, Vec<(usize, u64)>)>,
    /// which of the objects is listed, and from which place on
    at: (usize, u64),
}

/// The searches of one worker for what its part has of some keys.
#[derive(Default)]
pub struct Listing {
    walks: Vec<Walk>,
    /// entries that were told to have been put in an object, with their keys
    news: Vec<(usize, u64, Vec<u8>)>,
}

impl Listing {
    /// Whether there is something to look for.
    pub fn any(&self) -> bool {
        !self.walks.is_empty()
    }

    /// Whether all places of this many objects were looked at once.
    #[must_use]
    pub fn through(&self, objects: usize) -> bool {
        self.walks.iter().all(|w| w.at.0 >= objects)
    }

    /// Whether all places of this many objects were looked at once for a key.
    #[must_use]
    pub fn through_for(&self, key: Key, objects: usize) -> bool {
        let walk = self.walks.iter().find(|w| w.has(key));
        walk.is_some_and(|w| w.at.0 >= objects)
    }

    /// Keys that are looked for.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let all = self.walks.iter().flat_map(|w| &w.keys);
        all.map(|(key, _)| *key)
    }

    /// Begins to look for these keys, unless it does.
    pub fn begin(&mut self, of: &mut Instance, objects: &[usize], keys: Vec<Key>) {
        let known = |key: &Key| self.walks.iter().any(|w| w.has(*key));
        let mut keys: Vec<_> = keys.into_iter().filter(|k| !known(k)).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return;
        }
        if self.walks.is_empty() {
            // What was put before is listed at its place.
            for object in objects {
                let _ = of.list(*object, 0..0, &mut |_| ());
            }
        }
        self.walks.push(Walk {
            keys: keys.into_iter().map(|key| (key, Vec::new())).collect(),
            at: (0, 0),
        });
    }

    /// Looks for a key no longer.
    pub fn forget(&mut self, key: Key) {
        for walk in &mut self.walks {
            walk.keys.retain(|k| k.0 != key);
        }
        self.walks.retain(|w| !w.keys.is_empty());
    }

    /// Lists some places more, and what was put since the last call.
    pub fn step(&mut self, of: &mut Instance, objects: &[usize], keys: &dyn Keys) {
        self.heard(of, objects, keys);
        if let Some(walk) = self.walks.iter_mut().find(|w| w.at.0 < objects.len()) {
            walk.on(of, (objects, keys), STEP);
        }
    }

    /// Takes note of what was put since the last call, for all walks.
    fn heard(&mut self, of: &mut Instance, objects: &[usize], keys: &dyn Keys) {
        let mut all = true;
        for object in objects {
            let news = &mut self.news;
            let told = of.list(*object, 0..0, &mut |e| {
                news.push((*object, e.place, e.key.to_vec()));
            });
            all &= matches!(told, Ok(Some(true)));
        }
        for walk in &mut self.walks {
            for (object, place, bytes) in &self.news {
                walk.found(*object, *place, bytes, keys);
            }
            if !all {
                walk.at = (0, 0);
            }
        }
        self.news.clear();
    }

    /// The entries of a key that is looked for, in the order of their places, and no longer looks for it; none if it did not look
    /// for it, or kinds of objects do not list their places.
    pub fn end(
        &mut self,
        of: &mut Instance,
        objects: &[usize],
        (keys, key): (&dyn Keys, Key),
    ) -> Option<Vec<(usize, Stamped)>> {
        let at = self.walks.iter().position(|w| w.has(key))?;
        self.heard(of, objects, keys);
        let walk = self.walks.get_mut(at)?;
        while walk.at.0 < objects.len() {
            if !walk.on(of, (objects, keys), u64::MAX) {
                self.forget(key);
                return None;
            }
        }
        let found = walk.keys.iter_mut().find(|k| k.0 == key)?;
        let mut places = std::mem::take(&mut found.1);
        let order = |object: &usize| objects.iter().position(|o| o == object);
        places.sort_by_key(|(object, place)| (order(object), *place));
        places.dedup();
        let mut all = Vec::new();
        for (object, place) in places {
            // Another one may have taken the place meanwhile.
            let told = of.list(object, place..place + 1, &mut |e| {
                if keys.belongs(object, e.key, key) {
                    all.push((object, e.kept()));
                }
            });
            debug_assert!(matches!(told, Ok(Some(true))));
        }
        self.forget(key);
        Some(all)
    }
}

impl Walk {
    fn has(&self, key: Key) -> bool {
        self.keys.binary_search_by_key(&key, |k| k.0).is_ok()
    }

    /// Lists up to `most` places more; false where there is no list.
    fn on(&mut self, of: &mut Instance, (objects, keys): (&[usize], &dyn Keys), most: u64) -> bool {
        let (index, from) = self.at;
        let Some(object) = objects.get(index).copied() else {
            return true;
        };
        let all = of.capacity(object);
        let to = from.saturating_add(most).min(all);
        let told = of.list(object, from..to, &mut |e| {
            self.found(object, e.place, e.key, keys);
        });
        self.at = if to < all {
            (index, to)
        } else {
            (index + 1, 0)
        };
        matches!(told, Ok(Some(_)))
    }

    fn found(&mut self, object: usize, place: u64, bytes: &[u8], keys: &dyn Keys) {
        if let Some(only) = keys.only(object, bytes) {
            let at = only.map(|key| self.keys.binary_search_by_key(&key, |k| k.0));
            if let Some((_, places)) = at.and_then(|at| self.keys.get_mut(at.ok()?)) {
                places.push((object, place));
            }
            return;
        }
        for (key, places) in &mut self.keys {
            if keys.belongs(object, bytes, *key) {
                places.push((object, place));
            }
        }
    }
}
