//! One execution to be: what comes in, and what state is there before.

use millrace_object::program::{ObjectId, Program, Role};

/// Input of an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trial {
    /// index of the entry in `Program::entries`
    pub entry: usize,
    /// the frame; empty for an entry that takes no packet
    pub packet: Vec<u8>,
    /// ingress port
    pub port: u32,
    /// how many ports there are
    pub ports: u32,
    /// ns since the epoch
    pub time: u64,
}

impl Trial {
    /// An entry that takes no packet.
    #[must_use]
    pub fn idle(entry: usize, time: u64) -> Self {
        Self {
            entry,
            packet: Vec::new(),
            port: 0,
            ports: 0,
            time,
        }
    }
}

/// Something that is in state before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seed {
    /// an entry; a leased number is one
    Entry {
        /// whose
        object: ObjectId,
        /// as long as the object's keys
        key: Vec<u8>,
        /// as long as the object's values
        value: Vec<u8>,
    },
    /// entries of other keys, so many that no further one fits
    Full {
        /// whose
        object: ObjectId,
        /// keys that none of them has
        but: Vec<Vec<u8>>,
    },
    /// the number that an allocator leases next, as far as others do not stand above it already
    Next {
        /// whose
        object: ObjectId,
        /// the number
        number: u64,
    },
    /// what a sketch or a classifier says of a key
    Estimate {
        /// whose
        object: ObjectId,
        /// as long as the object's keys
        key: Vec<u8>,
        /// the sum, or the class
        sum: u32,
    },
    /// what a member of numbers that packets add to is
    Member {
        /// whose
        object: ObjectId,
        /// which, from 0
        member: u64,
        /// its number
        value: u64,
    },
}

/// Lookup of the value under a key of an object, at some moment.
pub type Lookup<'a> = dyn Fn(ObjectId, &[u8]) -> Option<Vec<u8>> + 'a;

/// Content of a global at start, parameters among them.
pub type Content = (ObjectId, Vec<u8>);

/// An execution, and the state it begins in.
#[derive(Clone, Debug)]
pub struct Case {
    /// index of the path in its entry
    pub path: usize,
    /// what comes in
    pub trial: Trial,
    /// contents of globals, in the order of their objects
    pub contents: Vec<Content>,
    /// what else is in state, in the order in which it is put there
    pub seeds: Vec<Seed>,
}

/// The program with other contents of its globals.
#[must_use]
pub fn with_contents(program: &Program, contents: &[Content]) -> Program {
    let mut program = program.clone();
    for (object, content) in contents {
        if let Some(o) = program.objects.get_mut(object.0) {
            o.initial = Some(content.clone());
        }
    }
    program
}

/// Contents of a global at start.
#[must_use]
pub fn content(program: &Program, object: ObjectId) -> Vec<u8> {
    let object = program.objects.get(object.0);
    object.map_or_else(Vec::new, |o| match &o.initial {
        Some(initial) => initial.clone(),
        None => vec![0; o.value_bytes as usize],
    })
}

/// A little-endian number of at most 8 bytes.
#[must_use]
pub fn number(bytes: &[u8]) -> u64 {
    let low = bytes.iter().take(8).rev();
    low.fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Whether an entry takes packets.
#[must_use]
pub fn takes_packets(role: Role) -> bool {
    matches!(role, Role::Xdp | Role::OnPacket)
}
