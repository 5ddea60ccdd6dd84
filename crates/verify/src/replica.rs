//! Replicas of a lane: its packets are numbered as `run` numbers them, and each copy applies the rows of all others
//! (crates/dataplane/src/replica).
//!
//! The reference is the sequential program. Beside that all replicas are compared with each other, byte for byte: they have
//! one hash secret, and did the same in the same order.

use std::sync::Arc;

use millrace_dataplane::module::{Config, Keeping, Module, ModuleError};
use millrace_dataplane::packet::MAX_FRAME;
use millrace_dataplane::replica::{
    Came, Choice, Fault, Group, Heavies, Place, ROWS, Sequencing, Small,
};
use millrace_object::program::Program;
use millrace_place::Held;

use crate::copy::{Copy, Start};
use crate::deal::Deal;
use crate::lane::Lane;
use crate::trace::Packet;

/// What numbers the packets of a lane whose copies are replicas.
pub struct Numbered(Sequencing);

impl Numbered {
    /// For this many copies; none where the module replicates nothing.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(start: &Start<'_>, workers: u32) -> Result<Option<Self>, ModuleError> {
        let small = start.small.as_ref();
        let (module, config) =
            small.map_or((start.module, start.config), |s| (&s.module, &s.config));
        if workers < 2 || module.row_bytes().is_none() {
            return Ok(None);
        }
        let failed = |what: String| ModuleError::Create {
            path: module.path().to_owned(),
            what,
        };
        let (count, time) = (workers as usize, start.config.time);
        let group = match small {
            Some(small) => Group::of_heavies(small, count, ROWS, time),
            None => Group::new(module, count, ROWS, time),
        };
        let group = group.map_err(|e| failed(e.to_string()))?;
        let of = (start.entry, start.ports);
        let made = Sequencing::new(&group, module, config, of);
        let made = made.map_err(|e| failed(e.to_string()))?;
        // Keys are moved at any moment, not where it pays.
        let seed = start.config.sketch_seed;
        Ok(Some(Self(made.choosing(Choice::Seeded(seed)))))
    }

    /// What the copies have in common.
    pub fn group(&self) -> &Arc<Group> {
        self.0.group()
    }

    /// A packet's place in the order of rows, and whose turn it is; none for one that crosses no border.
    pub fn place(&mut self, packet: &Packet) -> Option<(Place, u32)> {
        if packet.frame.len() > MAX_FRAME {
            return None;
        }
        let came = Came {
            frame: &packet.frame,
            port: packet.port,
            number: packet.number,
        };
        let looked = self.0.look(&came, packet.time);
        let placed = looked.and_then(|()| self.0.came(&came, packet.time));
        self.0.publish();
        placed.ok()
    }

    /// A last heartbeat, at the end, ns; its number.
    pub fn end(&mut self, time: u64) -> u64 {
        // There is always a number left.
        let last = self.0.beat(time).unwrap_or_else(|_| self.0.sequence());
        self.0.publish();
        last
    }

    /// Promotions and demotions of heavy keys; none where all are replicated.
    pub fn moves(&self) -> Option<(u64, u64)> {
        self.0.moves()
    }

    /// Promotions whose entries the owner looked for ahead.
    pub fn foreseen(&self) -> u64 {
        self.0.group().looks().0
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.0.sequence()
    }
}

/// What heavy keys have, where the placement replicates these alone.
pub fn small(deal: &Deal<'_>, module: Option<&Arc<Module>>, config: &Config) -> Option<Small> {
    let elephants = deal.placement.elephants.as_ref()?;
    let objects = deal.placement.objects.iter().enumerate();
    let divided = objects.filter(|(_, o)| o.held == Held::Divided);
    Some(Small {
        module: module?.clone(),
        config: Config {
            hash_seed: secret(config, 0, true),
            ..config.clone()
        },
        heavies: Heavies {
            keys: elephants.keys.clone(),
            objects: divided.map(|(at, _)| at).collect(),
            row: elephants.row,
        },
    })
}

/// The secret of a copy's hash tables: one for all replicas, else one of its own.
pub fn secret(config: &Config, copy: u64, replicas: bool) -> u64 {
    config
        .hash_seed
        .wrapping_add(if replicas { 2 } else { copy })
}

/// A replica that is not as the first one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unlike {
    /// an object differs
    Object {
        /// by its index in the program
        object: usize,
        /// the worker
        worker: u32,
    },
    /// it could not go on
    Stopped(Fault),
    /// the content of an object cannot be taken
    Kept(String),
}

/// Compares the replicas of a lane with the first one, after the last packet at `now` (ns); each object's first difference.
pub fn unlike(program: &Program, deal: &Deal<'_>, lane: &mut Lane<'_>, now: u64) -> Vec<Unlike> {
    let mut all: Vec<Unlike> = Vec::new();
    if lane.numbered.is_none() {
        return all;
    }
    let stopped = lane.copies.iter_mut().filter_map(Copy::fault);
    all.extend(stopped.map(Unlike::Stopped));
    for object in 0..program.objects.len() {
        let heavy = deal.placement.elephants.is_some() && *deal.held(object) == Held::Divided;
        if *deal.held(object) != Held::Replicated && !heavy {
            continue;
        }
        let mut first = None;
        for (worker, copy) in (0..).zip(&mut lane.copies) {
            if copy.keeping(object) != Keeping::All {
                break;
            }
            let small = copy.small_content(object, now).filter(|_| heavy);
            let content = match small.unwrap_or_else(|| copy.content(object, now)) {
                Ok(content) => content,
                Err(e) => {
                    all.push(Unlike::Kept(e.to_string()));
                    break;
                }
            };
            match &first {
                None => first = Some(content),
                Some(first) if *first == content => {}
                Some(_) => {
                    all.push(Unlike::Object { object, worker });
                    break;
                }
            }
        }
    }
    all
}
