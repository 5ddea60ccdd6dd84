//! Eviction from full LRU maps. The rule is that of fastpath/state/lru_hash.h, CLOCK (Corbato: A Paging
//! Experiment with the Multics System, 1968), here one place at a step. The kernel's lists choose others.

use std::collections::BTreeMap;

/// The places of one map's entries, and the hand.
#[derive(Default)]
pub(in super::super) struct Clock {
    places: Vec<Place>,
    /// where each key is
    at: BTreeMap<Vec<u8>, usize>,
    /// places given back, the next to be taken last
    free: Vec<usize>,
    hand: usize,
}

#[derive(Default)]
struct Place {
    key: Vec<u8>,
    /// used since the hand passed
    used: bool,
}

impl Clock {
    /// As it was: the keys at their places and whether the hand has passed since they were used, the free places with
    /// the next to be taken first, the hand.
    pub(in super::super) fn of(
        capacity: usize,
        entries: impl Iterator<Item = (usize, Vec<u8>, bool)>,
        free: &[usize],
        hand: usize,
    ) -> Self {
        let mut clock = Self {
            places: (0..capacity).map(|_| Place::default()).collect(),
            at: BTreeMap::new(),
            free: free.iter().rev().copied().collect(),
            hand,
        };
        for (at, key, used) in entries {
            clock.at.insert(key.clone(), at);
            if let Some(place) = clock.places.get_mut(at) {
                *place = Place { key, used };
            }
        }
        clock
    }

    /// An entry is looked up or updated.
    pub(super) fn used(&mut self, key: &[u8]) {
        let place = self.at.get(key).and_then(|at| self.places.get_mut(*at));
        if let Some(place) = place {
            place.used = true;
        }
    }

    /// An entry is deleted.
    pub(super) fn removed(&mut self, key: &[u8]) {
        if let Some(at) = self.at.remove(key) {
            self.free.push(at);
        }
    }

    /// An entry is put in; of a full map, the key that goes for it.
    pub(super) fn inserted(&mut self, key: &[u8], capacity: u64) -> Option<Vec<u8>> {
        let mut evicted = None;
        if self.at.len() as u64 >= capacity {
            let victim = self.victim()?;
            let key = self.places.get(victim).map(|p| p.key.clone())?;
            self.removed(&key);
            evicted = Some(key);
        }
        let at = self.free.pop().unwrap_or(self.places.len());
        if at == self.places.len() {
            self.places.push(Place::default());
        }
        if let Some(place) = self.places.get_mut(at) {
            *place = Place {
                key: key.to_vec(),
                used: false,
            };
        }
        self.at.insert(key.to_vec(), at);
        evicted
    }

    /// The first place from the hand on that was not used since the hand passed; all are taken.
    fn victim(&mut self) -> Option<usize> {
        // After one round none is marked.
        for _ in 0..=2 * self.places.len() {
            let at = self.hand;
            self.hand = (at + 1) % self.places.len().max(1);
            if !std::mem::take(&mut self.places.get_mut(at)?.used) {
                return Some(at);
            }
        }
        None
    }
}
