//! The sequencer's side.

use super::MAX_ELEPHANTS;
use crate::sequence::{LAST, MAX_CORES};

/// Replicated keys, and the numbers of rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Elephants<K> {
    cores: u16,
    sequence: u64,
    turn: u16,
    slots: Vec<Option<K>>,
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sent {
    /// its core
    pub core: u16,
    /// its core applies all rows up to this one first; if it is an elephant's and touches state, this one is its own
    pub sequence: u64,
    /// the elephant's slot; none for a sharded key
    pub slot: Option<u8>,
    /// whether row `sequence` is the packet's own
    pub row: bool,
}

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Move {
    /// from its owner to all cores
    Promote,
    /// from all cores to an owner
    Demote,
}

/// A row that moves a key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Moving<K> {
    /// its number
    pub number: u64,
    /// the direction
    pub direction: Move,
    /// the elephant's slot
    pub slot: u8,
    /// the key
    pub key: K,
    /// the core that has the key's state before a promotion, or after a demotion
    pub owner: u16,
}

/// A key that is not moved; nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MoveError {
    /// No slot is free.
    #[error("{MAX_ELEPHANTS} keys are replicated, as many as there can be: demote one first")]
    Full,
    /// It is there.
    #[error("the key is replicated already")]
    Replicated,
    /// It is not there.
    #[error("the key is not replicated")]
    Sharded,
    /// No such core.
    #[error("there is no core {owner} among {cores}")]
    Owner {
        /// the core
        owner: u16,
        /// how many there are
        cores: u16,
    },
    /// There is no number left.
    #[error("row {LAST} was the last: start replicas and sequencer again")]
    Exhausted,
}

impl<K: Clone + Eq> Elephants<K> {
    /// Without elephants, for 1 to 64 cores (other numbers count as the nearest of these). Row numbers begin after `sequence`.
    #[must_use]
    pub fn new(cores: u16, sequence: u64) -> Self {
        Self {
            cores: cores.clamp(1, MAX_CORES),
            sequence,
            turn: 0,
            slots: vec![None; MAX_ELEPHANTS],
        }
    }

    /// The number of the last row.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Rows up to this one were numbered elsewhere. A smaller number than there were changes nothing.
    pub fn numbered(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
    }

    /// The slot of a replicated key.
    #[must_use]
    pub fn slot(&self, key: &K) -> Option<u8> {
        let found = self.slots.iter().position(|s| s.as_ref() == Some(key));
        found.map(|slot| slot as u8)
    }

    /// Replicated keys, by slot.
    pub fn keys(&self) -> impl Iterator<Item = (u8, &K)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, key)| Some((slot as u8, key.as_ref()?)))
    }

    /// Sends a packet. `owner` is the core that the hash of its key names; `touch`: whether it can touch the key's state.
    ///
    /// # Errors
    /// [`MoveError::Exhausted`]: an elephant's packet needs a row.
    pub fn packet(&mut self, key: &K, owner: u16, touch: bool) -> Result<Sent, MoveError> {
        let slot = self.slot(key);
        let row = slot.is_some() && touch;
        if row {
            self.number()?;
        }
        let core = match slot {
            None => owner,
            Some(_) => {
                let core = self.turn;
                self.turn = (core + 1) % self.cores;
                core
            }
        };
        Ok(Sent {
            core,
            sequence: self.sequence,
            slot,
            row,
        })
    }

    /// Replicates a key that `owner` has had so far. The row comes before all later packets.
    ///
    /// # Errors
    /// All but [`MoveError::Sharded`].
    pub fn promote(&mut self, key: &K, owner: u16) -> Result<Moving<K>, MoveError> {
        self.core(owner)?;
        if self.slot(key).is_some() {
            return Err(MoveError::Replicated);
        }
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.ok_or(MoveError::Full)?;
        let number = self.number()?;
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(key.clone());
        }
        Ok(Moving {
            number,
            direction: Move::Promote,
            slot: slot as u8,
            key: key.clone(),
            owner,
        })
    }

    /// Gives a key to `owner`, which the key's packets go to from now on.
    ///
    /// # Errors
    /// [`MoveError::Sharded`], [`MoveError::Owner`], [`MoveError::Exhausted`].
    pub fn demote(&mut self, key: &K, owner: u16) -> Result<Moving<K>, MoveError> {
        self.core(owner)?;
        let slot = self.slot(key).ok_or(MoveError::Sharded)?;
        let number = self.number()?;
        if let Some(place) = self.slots.get_mut(usize::from(slot)) {
            *place = None;
        }
        Ok(Moving {
            number,
            direction: Move::Demote,
            slot,
            key: key.clone(),
            owner,
        })
    }

    /// A row for something else, such as a heartbeat.
    ///
    /// # Errors
    /// [`MoveError::Exhausted`].
    pub fn number(&mut self) -> Result<u64, MoveError> {
        if self.sequence >= LAST {
            return Err(MoveError::Exhausted);
        }
        self.sequence += 1;
        Ok(self.sequence)
    }

    fn core(&self, owner: u16) -> Result<(), MoveError> {
        let cores = self.cores;
        match owner < cores {
            true => Ok(()),
            false => Err(MoveError::Owner { owner, cores }),
        }
    }
}
