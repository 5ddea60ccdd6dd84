//! A core's side.

use std::collections::BTreeMap;

use super::{Move, Moving};

/// Where owners publish the state of promoted keys, for the other cores.
pub trait Handover<S> {
    /// Publishes the state of the key that row `number` promotes, for `others` cores; none: the key has none.
    fn publish(&mut self, number: u64, state: Option<S>, others: u16);

    /// Takes a copy of it; none: it is not published yet. Each other core takes one.
    fn take(&mut self, number: u64) -> Option<Option<S>>;
}

/// A handover in one memory. A place is free again when all other cores have taken their copies.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Passed<S> {
    places: BTreeMap<u64, (Option<S>, u16)>,
}

impl<S> Default for Passed<S> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
        }
    }
}

impl<S> Passed<S> {
    /// How many states wait for cores to take them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.places.len()
    }
}

impl<S: Clone> Handover<S> for Passed<S> {
    fn publish(&mut self, number: u64, state: Option<S>, others: u16) {
        if others > 0 {
            self.places.insert(number, (state, others));
        }
    }

    fn take(&mut self, number: u64) -> Option<Option<S>> {
        let (state, left) = self.places.get_mut(&number)?;
        *left -= 1;
        match *left {
            0 => self.places.remove(&number).map(|(state, _)| state),
            _ => Some(state.clone()),
        }
    }
}

/// A core's state: its own part, and its replica of the elephants.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Side<K, S> {
    core: u16,
    cores: u16,
    applied: u64,
    own: BTreeMap<K, S>,
    replica: BTreeMap<u8, (K, Option<S>)>,
}

impl<K: Clone + Ord, S: Clone> Side<K, S> {
    /// Empty, before the row after `applied`.
    #[must_use]
    pub fn new(core: u16, cores: u16, applied: u64) -> Self {
        Self {
            core,
            cores,
            applied,
            own: BTreeMap::new(),
            replica: BTreeMap::new(),
        }
    }

    /// The number of the last row that was applied.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Keys of its own part.
    #[must_use]
    pub fn own(&self) -> &BTreeMap<K, S> {
        &self.own
    }

    /// Keys of its replica, by slot.
    pub fn replica(&self) -> impl Iterator<Item = &(K, Option<S>)> {
        self.replica.values()
    }

    /// Changes the state of a key by a packet of this core or by an elephant's row: in slot `slot` of the replica, or in its own
    /// part. What `change` gives is given back; none if the slot does not hold this key, which is an error of the caller.
    pub fn change<T>(
        &mut self,
        slot: Option<u8>,
        key: &K,
        change: impl FnOnce(&mut Option<S>) -> T,
    ) -> Option<T> {
        let Some(slot) = slot else {
            let mut state = self.own.remove(key);
            let given = change(&mut state);
            if let Some(state) = state {
                self.own.insert(key.clone(), state);
            }
            return Some(given);
        };
        let place = self.replica.get_mut(&slot);
        let (_, state) = place.filter(|(held, _)| held == key)?;
        Some(change(state))
    }

    /// Says that row applied + 1, which moves no key, has been applied.
    pub fn passed(&mut self) {
        self.applied += 1;
    }

    /// Applies row applied + 1, which moves a key; false: its owner has not published the state yet, and this core has to come
    /// again. Nothing has changed then.
    ///
    /// The owner processes all packets that it received before the first one with this number or a later one beforehand.
    pub fn moves(&mut self, row: &Moving<K>, handover: &mut impl Handover<S>) -> bool {
        match row.direction {
            Move::Promote if row.owner == self.core => {
                let state = self.own.remove(&row.key);
                handover.publish(row.number, state.clone(), self.cores.saturating_sub(1));
                self.replica.insert(row.slot, (row.key.clone(), state));
            }
            Move::Promote => match handover.take(row.number) {
                None => return false,
                Some(state) => {
                    self.replica.insert(row.slot, (row.key.clone(), state));
                }
            },
            Move::Demote => {
                let held = self.replica.remove(&row.slot);
                let held = held.filter(|(key, _)| *key == row.key);
                if let Some((key, Some(state))) = held.filter(|_| row.owner == self.core) {
                    self.own.insert(key, state);
                }
            }
        }
        self.applied = row.number;
        true
    }
}
