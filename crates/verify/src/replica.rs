//! Replicas of a lane: its packets are numbered as `run` numbers them, and each copy applies the rows of all others
//! (crates/dataplane/src/replica).
//!
//! The reference is the sequential program. Beside that all replicas are compared with each other, byte for byte: they have
//! one hash secret, and did the same in the same order.

use std::sync::Arc;

use millrace_dataplane::module::{Config, Keeping, ModuleError};
use millrace_dataplane::packet::MAX_FRAME;
use millrace_dataplane::replica::{Fault, Group, Place, ROWS, Sequencing};
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
        if workers < 2 || start.module.row_bytes().is_none() {
            return Ok(None);
        }
        let failed = |what: String| ModuleError::Create {
            path: start.module.path().to_owned(),
            what,
        };
        let group = Group::new(start.module, workers as usize, ROWS, start.config.time);
        let group = group.map_err(|e| failed(e.to_string()))?;
        let of = (start.entry, start.ports);
        let made = Sequencing::new(&group, start.module, start.config, of);
        Ok(Some(Self(made.map_err(|e| failed(e.to_string()))?)))
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
        let placed = self
            .0
            .packet(&packet.frame, packet.port, packet.number, packet.time);
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

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.0.sequence()
    }
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
        if *deal.held(object) != Held::Replicated {
            continue;
        }
        let mut first = None;
        for (worker, copy) in (0..).zip(&mut lane.copies) {
            if copy.keeping(object) != Keeping::All {
                break;
            }
            let content = match copy.content(object, now) {
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
