//! How the packets and the state of a function are dealt out to workers: what a plan decides, and nothing of
//! why.

use millrace_dataplane::Share;
use millrace_dataplane::share::Word;
use millrace_object::contract::Holds;
use millrace_object::program::{Program, StateObject};
use millrace_object::state::Addressing;
use millrace_plan::Finder;
use millrace_steer::fields::parse;
use millrace_steer::{Parsed, Steering};

/// Who gets a packet.
pub trait Dispatch: Sync {
    /// The worker of a frame that comes in at a port.
    fn worker(&self, port: u32, frame: &[u8]) -> u32;

    /// The frame as it is read by whoever decides this. Frames of a port that are read alike are one flow: one worker
    /// has to get them all, and does them in order. Of others nobody promises an order.
    fn read(&self, port: u32, frame: &[u8]) -> Parsed;
}

/// What the NIC and the receiving core do, port by port; packets of ports beyond the last go to worker 0.
impl Dispatch for Vec<Steering> {
    fn worker(&self, port: u32, frame: &[u8]) -> u32 {
        self.get(port as usize).map_or(0, |s| s.queue(frame))
    }

    fn read(&self, port: u32, frame: &[u8]) -> Parsed {
        let steering = self.get(port as usize);
        steering.map_or_else(|| parse(frame), |s| s.read(frame))
    }
}

/// How a state object lives on several workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Held {
    /// each worker has the entries of its own packets, and a part of the capacity
    Divided,
    /// one worker runs everything that touches it, with the whole capacity
    Alone,
    /// one for all workers, under the lock
    Shared,
    /// each worker has all of it, and all have the same: it is only read, or written at start
    Replicated,
    /// each worker adds to these numbers of a part of its own; the sums of the parts' are the value's, and all else in it
    /// is alike everywhere
    Merged(Vec<Word>),
    /// each worker has one of its own, which is not compared, and why
    Private(String),
}

impl Held {
    /// How an object is held when every object that packets write is divided.
    #[must_use]
    pub fn divided(object: &StateObject) -> Self {
        if object.read_only || object.kind.host_only() || object.kind.holds_maps() {
            return Self::Replicated;
        }
        match (object.kind.holds, object.kind.addressing) {
            _ if object.kind.per_cpu => Self::Private("each CPU has values of its own".into()),
            (Holds::Variables | Holds::Programs | Holds::Routes, _) => Self::Replicated,
            (Holds::Records, _) => Self::Private("compared record by record".into()),
            (_, Addressing::None) => Self::Private("a sequence has no keys".into()),
            _ => Self::Divided,
        }
    }

    /// How an object that is held so stands on the workers, where no plan says it.
    fn share(&self, object: &StateObject) -> Share {
        match self {
            Self::Divided | Self::Alone => Share::divided(object.capacity),
            Self::Shared => Share::Locked,
            Self::Replicated => Share::Copied,
            Self::Merged(words) => Share::merged(words, false),
            Self::Private(_) => Share::Own { latest: false },
        }
    }
}

/// What is dealt out, and to whom.
pub struct Deal<'a> {
    /// how many workers, at least 1
    pub workers: u32,
    /// who gets which packet; a number that is no worker's means that number modulo how many there are
    pub dispatch: &'a dyn Dispatch,
    /// for each object of the program, in its order
    pub held: Vec<Held>,
    /// objects by name, and the capacity of each worker's part where that is not the declared one
    pub parts: Vec<(String, u64)>,
    /// allocators by name whose numbers come home, and over how many indexes of the indirection table; what they go by
    /// stands in the configuration
    pub homes: Vec<(String, u32)>,
    /// tells where entries lie, where a plan says it
    pub finder: Option<Finder>,
    /// how each object stands on the workers, as `run` has it: whoever looks from outside sees that
    pub shares: Vec<Share>,
}

/// The part of a capacity that each of so many workers has.
#[must_use]
pub fn part(capacity: u64, workers: u32) -> u64 {
    capacity.div_ceil(u64::from(workers.max(1))).max(1)
}

/// Whether the entries of an object are counted, so that a capacity can be divided: what is addressed by an
/// index has an element for each of its indices everywhere.
#[must_use]
pub fn has_room(object: &StateObject) -> bool {
    let entries = object.kind.holds == Holds::Values && !object.kind.has_all();
    entries && object.nesting.is_none() && object.initial.is_none()
}

impl<'a> Deal<'a> {
    /// Whether workers have any object in common. One worker has all to itself.
    #[must_use]
    pub fn shares(&self) -> bool {
        self.workers > 1 && self.shares.iter().any(|s| matches!(s, Share::Locked))
    }

    /// The names of the objects that workers have in common, those that are not compared among them: what one packet
    /// leaves in a queue or a variable decides over the next.
    #[must_use]
    pub fn shared(&self, program: &Program) -> Vec<String> {
        let objects = program.objects.iter().zip(&self.shares);
        let shared = objects.filter(|(_, share)| self.shares() && matches!(share, Share::Locked));
        shared.map(|(o, _)| o.name.clone()).collect()
    }

    /// With each worker's part an even one.
    #[must_use]
    pub fn even(
        program: &Program,
        workers: u32,
        dispatch: &'a dyn Dispatch,
        held: Vec<Held>,
    ) -> Self {
        let objects = program.objects.iter().zip(&held);
        let shares = { objects.clone() }.map(|(o, held)| held.share(o));
        let shares = shares.collect();
        let divided = objects.filter(|(o, held)| **held == Held::Divided && has_room(o));
        let parts = divided.map(|(o, _)| (o.name.clone(), part(o.capacity, workers)));
        Self {
            workers,
            dispatch,
            parts: parts.collect(),
            homes: Vec::new(),
            finder: None,
            shares,
            held,
        }
    }

    /// The same with allocators whose numbers come home.
    #[must_use]
    pub fn with_homes(self, homes: Vec<(String, u32)>) -> Self {
        Self { homes, ..self }
    }

    /// The capacity that each worker's part of an object has.
    #[must_use]
    pub fn part(&self, object: &StateObject) -> u64 {
        let found = self.parts.iter().find(|(name, _)| *name == object.name);
        found.map_or(object.capacity, |(_, part)| *part)
    }
}
