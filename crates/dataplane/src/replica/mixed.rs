//! A worker where heavy keys are replicated and others sharded: beside its part of state it has a replica of that of heavy keys.
//!
//! The replica is a second instance, of code that has rows. Keys are in one of the two, so that packets of a sharded key and rows of
//! heavy ones do not meet, and a burst without a move in it runs each of the two apart: the sharded packets together, as if nothing
//! were replicated, then rows and heavy packets in their order. Around moves packets run one by one, in the order of their places.

use std::sync::Arc;

use millrace_steer::hybrid::{Key, Move, Moving};

use super::follow::Due;
use super::listing::Listing;
use super::moves::Heavies;
use super::{At, Edit, Effect, Fault, Group, Place, Replica};
use crate::clock;
use crate::module::{Config, Instance, Module, ModuleError, Record, abi};
use crate::moved::{found, put, remove, take};
use crate::packet::Burst;
use crate::worker::keep::StagePart;

/// Code of a function whose heavy keys are replicated, beside that of its parts.
#[derive(Clone, Debug)]
pub struct Small {
    /// with rows
    pub module: Arc<Module>,
    /// its state at start; `time` is set when the worker starts
    pub config: Config,
    /// which packets and entries a key has
    pub heavies: Heavies,
}

/// A worker's replica of heavy keys.
pub struct Mixed {
    replica: Replica,
    small: Instance,
    /// the heavy keys that are this worker's when they are sharded again
    mine: Vec<Key>,
    /// of those that will be heavy, what this worker's part has of them
    listing: Listing,
    /// announcements that were heard
    heard: u64,
    /// of a burst, packets of sharded and of heavy keys
    parts: [Vec<*mut abi::Packet>; 2],
    group: Arc<Group>,
}

// SAFETY: `parts` is scratch of one call of `run`; all else moves between threads.
unsafe impl Send for Mixed {}

impl Drop for Mixed {
    fn drop(&mut self) {
        self.group.moves.broken();
    }
}

impl Mixed {
    /// At its start.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(group: &Arc<Group>, small: &Small, worker: u32) -> Result<Self, ModuleError> {
        let config = Config {
            time: group.start(),
            ..small.config.clone()
        };
        let small = Instance::create(small.module.clone(), &config)?;
        Ok(Self {
            replica: Replica::new(group, &small, worker),
            small,
            mine: Vec::new(),
            listing: Listing::default(),
            heard: 0,
            parts: Default::default(),
            group: group.clone(),
        })
    }

    /// Its progress in the order of rows.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Why it cannot go on, told once.
    pub fn fault(&mut self) -> Option<Fault> {
        self.replica.fault()
    }

    /// What is replicated, on this worker.
    pub fn small(&mut self) -> &mut Instance {
        &mut self.small
    }

    /// The first row up to `upto` at which it would wait for another worker, and for which.
    #[must_use]
    pub fn waits(&self, upto: u64) -> Option<(u64, u32)> {
        let replica = &self.replica;
        let moves = &self.group.moves;
        moves.waits(replica.worker(), replica.applied(), upto)
    }

    /// Before the first packet, at a time in ns.
    pub fn start(&mut self, time: u64) {
        self.small.start(time);
        self.small.drain(drop);
    }

    /// Goes on where another run was, which had no heavy keys at its end: takes up what is neither moved nor shared.
    ///
    /// # Errors
    /// An object cannot hold what it had.
    pub fn resume(&mut self, part: &StagePart, now: u64, shift: u64) -> Result<(), ModuleError> {
        let group = self.group.clone();
        let moved = group.heavies().map_or(&[][..], |h| &h.objects);
        for (object, content) in part.contents.iter().enumerate() {
            if let Some(content) = content.as_ref().filter(|_| !moved.contains(&object)) {
                self.small.load(object, content, now, shift)?;
            }
        }
        Ok(())
    }

    /// After the last.
    pub fn stop(&mut self, time: u64) {
        self.small.stop(time);
        self.small.drain(drop);
    }

    /// Hands over the records of its packets.
    pub fn drain(&mut self, mut each: impl FnMut(Record)) {
        self.replica.records().for_each(&mut each);
        self.small.drain(each);
    }

    /// Applies all rows up to `upto`, and makes the moves among them; `own` is the worker's part. It waits for owners.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn follow(&mut self, own: &mut Instance, upto: u64) -> Result<(), Fault> {
        while let Some(due) = self.replica.advance(&mut self.small, upto)? {
            match due {
                Due::Edit(edit, at) => self.edit(own, &edit, at),
                Due::Move(moving) => self.make(own, &moving)?,
            }
        }
        Ok(())
    }

    /// Makes an edit.
    fn edit(&mut self, own: &mut Instance, edit: &Edit, at: At) {
        let group = self.group.clone();
        let Some(Heavies { keys, objects, .. }) = group.heavies() else {
            return;
        };
        if edit.effect != Effect::Kept {
            (edit.make)(&mut self.small, at);
            (edit.make)(own, at);
            return;
        }
        // As if its heavy keys had gone home.
        let mut home = Vec::new();
        for key in &self.mine {
            let entries = found(&mut self.small, objects, keys.as_ref(), *key);
            put(own, &entries, at.time);
            home.push(entries);
        }
        (edit.make)(own, at);
        home.iter().for_each(|entries| remove(own, entries));
    }

    /// Begins to look for the entries of keys that were announced.
    fn hear(&mut self, own: &mut Instance) {
        let announced = self.group.moves.announced();
        if announced == self.heard {
            return;
        }
        self.heard = announced;
        let group = self.group.clone();
        let Some(Heavies { objects, .. }) = group.heavies() else {
            return;
        };
        let news = group.moves.news(self.replica.worker());
        let (begun, over): (Vec<_>, Vec<_>) = news.into_iter().partition(|n| n.0);
        over.into_iter()
            .for_each(|(_, key)| self.listing.forget(key));
        let begun = begun.into_iter().map(|(_, key)| key).collect();
        self.listing.begin(own, objects, begun);
    }

    /// After a burst: looks for entries of keys that will be promoted, at some places more.
    fn look(&mut self, own: &mut Instance) {
        self.hear(own);
        if !self.listing.any() {
            return;
        }
        let group = self.group.clone();
        if let Some(Heavies { keys, objects, .. }) = group.heavies() {
            self.listing.step(own, objects, keys.as_ref());
        }
    }

    /// Makes a move.
    fn make(&mut self, own: &mut Instance, moving: &Moving<Key>) -> Result<(), Fault> {
        let group = self.group.clone();
        let Some(Heavies { keys, objects, .. }) = group.heavies() else {
            return Ok(());
        };
        let mine = u32::from(moving.owner) == self.replica.worker();
        let (mut lost, now) = (0, self.replica.time());
        self.mine.retain(|key| *key != moving.key);
        match moving.direction {
            Move::Promote => {
                if mine {
                    self.mine.push(moving.key);
                }
                let entries = if mine {
                    self.hear(own);
                    let wanted = (keys.as_ref(), moving.key);
                    let listed = self.listing.end(own, objects, wanted);
                    group.moves.looked(listed.is_some());
                    let taken = match listed {
                        Some(all) => {
                            debug_assert_eq!(all, found(own, objects, wanted.0, wanted.1));
                            remove(own, &all);
                            all
                        }
                        None => take(own, objects, wanted.0, wanted.1),
                    };
                    let taken = Arc::new(taken);
                    group.moves.publish(moving.number, taken.clone());
                    taken
                } else {
                    let taken = group.moves.take(moving.number);
                    taken.ok_or_else(|| self.replica.gone())?
                };
                lost = put(&mut self.small, &entries, now);
            }
            Move::Demote => {
                let entries = take(&mut self.small, objects, keys.as_ref(), moving.key);
                if mine {
                    lost = put(own, &entries, now);
                }
            }
        }
        if mine && lost > 0 {
            group.moves.lost(lost);
        }
        Ok(())
    }

    /// Runs packet entry `program` over a burst, whose packets carry their places; `own` is the worker's part.
    pub fn burst(
        &mut self,
        own: &mut Instance,
        (program, prefetch): (usize, bool),
        burst: &mut Burst,
    ) {
        let (pointers, count) = burst.descriptors();
        // SAFETY: `Burst` promises `count` distinct descriptors, each pointing into a buffer of its own that lives and
        // stays in place while `burst` is borrowed.
        unsafe {
            let all = std::slice::from_raw_parts(pointers, count as usize);
            self.run(own, (program, prefetch), all);
        }
    }

    /// The same over descriptors that lie anywhere; gives the ticks that took. Once it cannot go on it aborts all packets.
    ///
    /// # Safety
    /// As [`Replica::run`].
    pub(crate) unsafe fn run(
        &mut self,
        own: &mut Instance,
        (program, prefetch): (usize, bool),
        packets: &[*mut abi::Packet],
    ) -> u64 {
        let begin = clock::ticks();
        let mut parts = std::mem::take(&mut self.parts);
        parts.iter_mut().for_each(Vec::clear);
        if self.group.moves.behind(self.replica.applied()) {
            for pointer in packets {
                // SAFETY: as the caller promises.
                let packet = unsafe { &mut **pointer };
                let place = Place::of(packet.commit);
                let upto = place.sequence().saturating_sub(u64::from(place.own()));
                if self.follow(own, upto).is_err() {
                    (packet.fate, packet.out) = (abi::fate::ABORTED, 0);
                    continue;
                }
                let one = std::slice::from_ref(pointer);
                // SAFETY: as the caller promises.
                unsafe { self.part(own, (program, prefetch), place.heavy(), one) };
            }
        } else {
            let mut last = 0;
            for pointer in packets {
                // SAFETY: as the caller promises.
                let place = Place::of(unsafe { (**pointer).commit });
                last = place.sequence();
                let [sharded, heavy] = &mut parts;
                let part = if place.heavy() { heavy } else { sharded };
                part.push(*pointer);
            }
            for (part, heavy) in parts.iter().zip([false, true]) {
                // SAFETY: as the caller promises; each packet is in one part.
                unsafe { self.part(own, (program, prefetch), heavy, part) };
            }
            // Told by `fault`.
            let _ = self.follow(own, last);
        }
        self.parts = parts;
        self.look(own);
        clock::ticks().saturating_sub(begin)
    }

    /// Runs packets of sharded keys, or of heavy ones.
    ///
    /// # Safety
    /// As [`Replica::run`].
    unsafe fn part(
        &mut self,
        own: &mut Instance,
        (program, prefetch): (usize, bool),
        heavy: bool,
        packets: &[*mut abi::Packet],
    ) {
        if packets.is_empty() {
            return;
        }
        // SAFETY: as the caller promises.
        unsafe {
            match heavy {
                true => self.replica.run(&mut self.small, program, packets),
                false => own.run(program, prefetch, packets),
            }
        };
    }
}
