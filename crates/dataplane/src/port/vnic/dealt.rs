//! Packets of one thread where a sequencer says of each packet who gets it.
//!
//! A packet of a sharded key goes to the key's owner, one of a heavy key to the worker whose turn its number says. So each thread
//! finds its packets by itself, as long as all know the same heavy keys. These change at borders of periods only, where
//! each thread waits for the others (`replica::Batch::arrive`). Where some objects are replicated and others sharded, every packet goes
//! to its owner and has a row, and nothing changes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use millrace_steer::hybrid::{Heavy, Key, PERIOD};

use super::schedule::{Next, Turn};
use super::traffic::Traffic;
use crate::replica::{Counted, Group};

/// Packets of others that are passed at once, before there is time for something else.
const SEARCH: u64 = 4096;
/// Samples of a period below which a key is not heavy: a thousandth of the packets.
const FEW: u32 = PERIOD / 4 / 1024;

/// Keys of a capture's packets and their owners, as hardware works them out when packets come.
#[derive(Debug)]
pub struct Whose {
    /// for each entry, its key's index and its owner
    entries: Box<[(u32, u32)]>,
    /// the keys, each with the index of an entry that has it
    keys: Box<[(Key, u32)]>,
    by_key: HashMap<Key, u32>,
    /// heavy keys are replicated, others sharded
    chooses: bool,
}

impl Whose {
    /// Of all entries; none where packets are sprayed.
    pub fn new(group: &Group, traffic: &Traffic) -> Option<Self> {
        if !group.directs() {
            return None;
        }
        let of = |port: u32, frame: &[u8]| match group.heavies() {
            Some(heavies) => heavies.keys.packet(port, frame),
            None => (Key::default(), group.owner(port, frame).unwrap_or(0)),
        };
        let mut by_key = HashMap::new();
        let mut all = Vec::new();
        let entries = traffic.entries.iter().enumerate().map(|(at, entry)| {
            let (key, owner) = of(u32::from(entry.port), traffic.bytes(entry));
            let index = *by_key.entry(key).or_insert_with(|| {
                all.push((key, at as u32));
                all.len() as u32 - 1
            });
            (index, owner)
        });
        Some(Self {
            entries: entries.collect(),
            keys: all.into(),
            by_key,
            chooses: group.heavies().is_some(),
        })
    }

    /// An entry that has this key.
    pub fn entry(&self, key: Key) -> Option<usize> {
        let index = *self.by_key.get(&key)?;
        self.keys.get(index as usize).map(|(_, at)| *at as usize)
    }
}

/// One thread's packets, in the order of their numbers.
#[derive(Debug)]
pub struct Dealt {
    whose: Arc<Whose>,
    /// the workers of this thread, and how many there are
    mine: Range<u32>,
    workers: u32,
    /// packets in a row whose turn is one worker's
    group: u64,
    /// the number of the next packet to be looked at
    number: u64,
    /// its entry
    entry: usize,
    /// for each key, whether it is heavy
    heavy: Box<[bool]>,
    /// heavy keys
    replicated: Vec<u32>,
    /// of this period: samples and packets of keys, packets by owner
    sampled: Vec<u32>,
    counts: Box<[u32]>,
    loads: Vec<u64>,
}

impl Dealt {
    /// Of the thread that has these workers.
    pub fn new(whose: Arc<Whose>, mine: Range<u32>, workers: u32, group: u64) -> Self {
        Self {
            heavy: vec![false; whose.keys.len()].into(),
            counts: vec![0; whose.keys.len()].into(),
            mine,
            workers: workers.max(1),
            group: group.max(1),
            number: 0,
            entry: 0,
            replicated: Vec::new(),
            sampled: Vec::new(),
            loads: vec![0; workers as usize],
            whose,
        }
    }

    /// The number of the next packet that may be this thread's.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The packets that it was built over.
    pub fn whose(&self) -> &Whose {
        &self.whose
    }

    /// Whether there are heavy keys to choose.
    pub fn chooses(&self) -> bool {
        self.whose.chooses
    }

    /// Looks for the next packet before number `due`, not further than to the end of period `period`.
    pub fn find(&mut self, due: u64, period: u64) -> Next {
        let border = match self.whose.chooses {
            true => (period + 1) * u64::from(PERIOD),
            false => u64::MAX,
        };
        let end = due.min(border).min(self.number + SEARCH);
        while self.number < end {
            let Some(&(key, owner)) = self.whose.entries.get(self.entry) else {
                return Next::End;
            };
            let heavy = self.heavy.get(key as usize).copied().unwrap_or_default();
            let worker = match heavy {
                true => (self.number / self.group % u64::from(self.workers)) as u32,
                // Whom nobody owns, the last one has.
                false => owner.min(self.workers - 1),
            };
            if self.mine.contains(&worker) {
                return Next::Packet(Turn {
                    number: self.number,
                    entry: self.entry,
                    queue: Some(u64::from(worker)),
                    sharded: self.whose.chooses && !heavy,
                });
            }
            self.step();
        }
        if self.number >= border {
            return Next::Border;
        }
        Next::Later
    }

    /// The packet that was found is dealt with.
    pub fn pass(&mut self) {
        if self.whose.chooses
            && let Some(&(key, owner)) = self.whose.entries.get(self.entry)
        {
            let heavy = self.heavy.get(key as usize).copied().unwrap_or_default();
            if !heavy && let Some(load) = self.loads.get_mut(owner as usize) {
                *load += 1;
            }
            if heavy {
                if let Some(count) = self.counts.get_mut(key as usize) {
                    *count += 1;
                }
            } else if Heavy::samples_number(self.number) {
                self.sampled.push(key);
            }
        }
        self.step();
    }

    fn step(&mut self) {
        self.number += 1;
        self.entry += 1;
        if self.entry == self.whose.entries.len() {
            self.entry = 0;
        }
    }

    /// What was counted in the period that ends, in which the next begins.
    pub fn counted(&mut self) -> Counted {
        let mut counted = Counted {
            loads: self.loads.clone(),
            ..Counted::default()
        };
        self.loads.fill(0);
        let key_of = |index: u32| self.whose.keys.get(index as usize);
        for index in &self.replicated {
            let count = self.counts.get_mut(*index as usize);
            let packets = count.map_or(0, std::mem::take);
            if let Some((key, _)) = key_of(*index) {
                counted.replicated.push((*key, u64::from(packets)));
            }
        }
        for index in &self.sampled {
            if let Some(count) = self.counts.get_mut(*index as usize) {
                *count += 1;
            }
        }
        for index in self.sampled.drain(..) {
            let count = self.counts.get_mut(index as usize);
            let samples = count.map_or(0, std::mem::take);
            if let Some((key, at)) = key_of(index).filter(|_| samples >= FEW) {
                let owner = self.whose.entries.get(*at as usize).map_or(0, |e| e.1);
                counted.sampled.push((*key, owner, samples));
            }
        }
        counted
    }

    /// Which keys are heavy from now on.
    pub fn choose(&mut self, keys: &[Key]) {
        for index in self.replicated.drain(..) {
            if let Some(heavy) = self.heavy.get_mut(index as usize) {
                *heavy = false;
            }
        }
        for key in keys {
            // A key of another port's packets is none of these.
            if let Some(index) = self.whose.by_key.get(key)
                && let Some(heavy) = self.heavy.get_mut(*index as usize)
            {
                *heavy = true;
                self.replicated.push(*index);
            }
        }
    }
}
