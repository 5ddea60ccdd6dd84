//! Buckets of the indirection table under a steering that was drawn: which of them packets and entries of state have.
//!
//! The low bits of the table's index under which packets meet (`Plan::steering`) are the bucket. An entry has that of the packets that make
//! it (`placed.rs`); a leased number that is told apart by the table's index has it from its allocator's lists. An entry whose key does not tell its bucket cannot be
//! found, so that nothing of the function can move then, and the object says why.

use std::sync::Arc;

use millrace_object::program::{ObjectId, Program};
use millrace_object::state::Addressing;
use millrace_place::Treatment;
use millrace_steer::buckets::{Buckets, Drawn};
use millrace_steer::{Owners, Steering};

use crate::placed::Placed;
use crate::placed_reader::Reader;
use crate::plan::{ObjectPlan, Plan};

/// Buckets of a plan under one key.
#[derive(Debug)]
pub struct PlanBuckets {
    /// by port
    owners: Vec<Owners>,
    /// of a bucket's number
    bits: u32,
    /// devices are told this steering
    told: bool,
    /// by object: what its keys say of packets; empty where workers do not divide it
    placed: Arc<[Vec<Reader>]>,
    /// what draws another key, where one may take its place
    plan: Option<Arc<Plan>>,
}

/// Why the buckets of a function cannot move.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{object}: {why}")]
pub struct Stays {
    /// the object that stands in the way
    pub object: String,
    /// the author's line, where one is to blame
    pub line: Option<String>,
    /// why
    pub why: String,
}

impl Plan {
    /// Buckets of a program's packets and entries between ports with this steering, which [`Plan::steering`] gave.
    ///
    /// # Errors
    /// Some entries do not tell their bucket.
    pub fn buckets(
        &self,
        program: &Program,
        steering: &[Steering],
    ) -> Result<Arc<dyn Buckets>, Stays> {
        for planned in &self.objects {
            let object = program.objects.get(planned.id.0);
            if let Some((planned, why)) = object.and_then(|o| self.stays(planned, o, steering)) {
                return Err(Stays {
                    object: planned.name.clone(),
                    line: planned.line.as_ref().map(ToString::to_string),
                    why,
                });
            }
        }
        let of = |object: usize| -> Vec<Reader> {
            let divided = self.treatment(ObjectId(object)) == Treatment::Shard;
            // Entries that only come from outside are let in where all their keys tell.
            let looked = self.looked_for(object, steering);
            let all = self.placed.iter().filter(|p| divided && p.is_of(object));
            all.chain(looked).map(Reader::of).collect()
        };
        let bits = self.solved.space.index_bits() as u32;
        let owners: Vec<Owners> = steering.iter().map(Steering::owners).collect();
        Ok(Arc::new(PlanBuckets {
            bits: bits.min(16),
            told: true,
            placed: (0..program.objects.len()).map(of).collect(),
            // A number that came home under one key would not under another.
            plan: self.homes.is_empty().then(|| Arc::new(self.clone())),
            owners,
        }))
    }

    /// Whether the key of each entry of an object says its bucket, under this steering.
    fn tells_bucket(&self, object: usize, steering: &[Steering]) -> bool {
        // Where no packets make entries there are none, or those that were let in.
        let mut all = self.placed.iter().filter(|p| p.is_of(object));
        all.all(|p| self.placed_tells(p, steering))
    }

    fn placed_tells(&self, placed: &Placed, steering: &[Steering]) -> bool {
        let count = 1 << self.solved.space.index_bits().min(16);
        let port = steering.get(placed.port());
        placed.is_bound() && port.is_some_and(|s| placed.tells_bucket(&s.owners(), count))
    }

    /// What keys of a divided object say in which no packets make entries; nothing where some do not tell their bucket.
    fn looked_for(&self, object: usize, steering: &[Steering]) -> Vec<&Placed> {
        let divided = self.treatment(ObjectId(object)) == Treatment::Shard;
        let all = self.placed.iter();
        let all: Vec<_> = all.filter(|p| divided && p.is_looked_for(object)).collect();
        match all.iter().all(|p| self.placed_tells(p, steering)) {
            true => all,
            false => Vec::new(),
        }
    }

    /// Why the entries of an object cannot be found by bucket.
    fn stays<'a>(
        &self,
        planned: &'a ObjectPlan,
        object: &millrace_object::program::StateObject,
        steering: &[Steering],
    ) -> Option<(&'a ObjectPlan, String)> {
        let kind = object.kind;
        let why = match planned.treatment {
            Treatment::Alone => "one worker runs all that touches it".to_owned(),
            Treatment::Replicate | Treatment::Hybrid => {
                "workers apply rows of it in one order".to_owned()
            }
            Treatment::Spread | Treatment::Lock | Treatment::Transact | Treatment::Merge => {
                return None;
            }
            // Each index has a list of its numbers.
            Treatment::Shard if self.homes.iter().any(|h| h.id == planned.id) => return None,
            Treatment::Shard if kind.leases() => {
                "which packets use a number shows in no key, and each worker leases others"
                    .to_owned()
            }
            Treatment::Shard if kind.estimates() => {
                format!(
                    "{} {} does not know the keys that it counts",
                    article(kind.name),
                    kind.name
                )
            }
            Treatment::Shard
                if kind.per_cpu
                    || object.timer.is_some() && kind.addressing == Addressing::Index =>
            {
                format!("entries of {} cannot be moved one by one", kind.name)
            }
            Treatment::Shard
                if !matches!(kind.addressing, Addressing::Key | Addressing::Index)
                    || object.nesting.is_some() =>
            {
                format!("entries of {} cannot be moved one by one", kind.name)
            }
            Treatment::Shard if !self.tells_bucket(planned.id.0, steering) => {
                "its keys do not say which packets have an entry".to_owned()
            }
            Treatment::Shard => return None,
        };
        Some((planned, why))
    }
}

fn article(name: &str) -> &'static str {
    match name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => "an",
        false => "a",
    }
}

impl PlanBuckets {
    fn of(&self, port: usize, index: impl Fn(&Owners) -> u32) -> u32 {
        let owners = self.owners.get(port).or(self.owners.last());
        owners.map_or(0, index) & ((1 << self.bits) - 1)
    }
}

impl Buckets for PlanBuckets {
    fn count(&self) -> u32 {
        1 << self.bits
    }

    fn packet(&self, port: u32, frame: &[u8]) -> u32 {
        self.of(port as usize, |owners| owners.index(frame))
    }

    fn hashed(&self, port: u32, hash: u32, frame: &[u8]) -> Option<u32> {
        let index = |owners: &Owners| owners.index_of_hash(hash, frame);
        self.told.then(|| self.of(port as usize, index))
    }

    fn entry(&self, object: usize, key: &[u8]) -> Option<u32> {
        // Packets of several kinds may make it; all of them meet.
        let all = self.placed.get(object).map_or(&[][..], Vec::as_slice);
        let (port, packet) = all.iter().find_map(|p| Some((p.port(), p.packet(key)?)))?;
        Some(self.of(port, |owners| owners.place_of(&packet).0))
    }

    fn draw(&self, secret: [u8; 32]) -> Option<Drawn> {
        let plan = self.plan.as_ref()?;
        let steering = plan.steering(self.owners.len(), secret).ok()?;
        let buckets = Self {
            owners: steering.iter().map(Steering::owners).collect(),
            bits: self.bits,
            told: false,
            placed: self.placed.clone(),
            plan: Some(plan.clone()),
        };
        Some(Drawn {
            steering,
            buckets: Arc::new(buckets),
        })
    }
}
