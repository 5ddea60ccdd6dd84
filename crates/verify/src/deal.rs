//! How the packets and the state of a function are dealt out to workers: what a plan decides, and nothing of
//! why.

use millrace_object::program::{Program, StateObject};
use millrace_object::state::Addressing;
use millrace_place::{Held, Placement};
use millrace_plan::Finder;
use millrace_steer::fields::parse;
use millrace_steer::{Parsed, Steering};

use crate::moving::Moving;

/// Owner of a packet.
pub trait Dispatch: Sync {
    /// The worker of a frame that comes in at a port.
    fn worker(&self, port: u32, frame: &[u8]) -> u32;

    /// The frame as it is read by whoever decides this. Frames of a port that are read alike are one flow: one worker
    /// has to get them all, and does them in order. Of others nobody promises an order.
    fn read(&self, port: u32, frame: &[u8]) -> Parsed;
}

/// Steering by the NIC and the receiving core, port by port; packets of ports beyond the last go to worker 0.
impl Dispatch for Vec<Steering> {
    fn worker(&self, port: u32, frame: &[u8]) -> u32 {
        self.get(port as usize).map_or(0, |s| s.queue(frame))
    }

    fn read(&self, port: u32, frame: &[u8]) -> Parsed {
        let steering = self.get(port as usize);
        steering.map_or_else(|| parse(frame), |s| s.read(frame))
    }
}

/// Packets and the workers to which they are distributed.
pub struct Deal<'a> {
    /// how many workers, at least 1
    pub workers: u32,
    /// who gets which packet; a number that is no worker's means that number modulo how many there are
    pub dispatch: &'a dyn Dispatch,
    /// how each object of the program is held
    pub placement: Placement,
    /// tells where entries lie, where a plan says it
    pub finder: Option<Finder>,
    /// buckets of the indirection table change their workers, where the placement says which they are
    pub moving: Option<Moving>,
}

impl<'a> Deal<'a> {
    /// With each worker's part an even one.
    #[must_use]
    pub fn even(
        program: &Program,
        workers: u32,
        dispatch: &'a dyn Dispatch,
        held: Vec<Held>,
    ) -> Self {
        Self {
            workers,
            dispatch,
            placement: Placement::even(&program.objects, workers, held),
            finder: None,
            moving: None,
        }
    }

    /// Whether workers have any object in common. One worker has all to itself.
    #[must_use]
    pub fn shares(&self) -> bool {
        self.workers > 1 && self.placement.locks()
    }

    /// Whether packets of several workers are transactions.
    #[must_use]
    pub fn transacts(&self) -> bool {
        self.workers > 1 && self.placement.transacts()
    }

    /// Whether packets of several workers read parts of numbers that other workers have.
    #[must_use]
    pub fn stale(&self) -> bool {
        self.workers > 1 && self.placement.stale()
    }

    /// Whether each of several workers has a replica of any object.
    #[must_use]
    pub fn replicates(&self) -> bool {
        self.workers > 1 && self.placement.replicates()
    }

    /// How an object of the program is held.
    #[must_use]
    pub fn held(&self, object: usize) -> &Held {
        let place = self.placement.objects.get(object);
        place.map_or(&Held::Copied, |place| &place.held)
    }

    /// The capacity that each worker's part of an object has.
    #[must_use]
    pub fn part(&self, object: &StateObject) -> u64 {
        let place = self.placement.of(&object.name);
        place.map_or(object.capacity, |place| place.part)
    }
}

/// Why an object that is held so is not compared entry by entry; none where it is.
#[must_use]
pub fn private(held: &Held, object: &StateObject) -> Option<&'static str> {
    let records = object.kind.holds_records();
    let sequence = object.kind.addressing == Addressing::None && !object.kind.is_global();
    match held {
        Held::Locked | Held::Transacted if records => {
            Some("whose packet left a record is not told by a buffer that workers share")
        }
        _ if records => Some("its records are compared packet by packet"),
        Held::Copied => None,
        _ if sequence => Some("what it holds has no keys"),
        Held::Own { .. } => Some("each CPU has values of its own"),
        _ => None,
    }
}
