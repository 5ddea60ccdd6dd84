//! Outcome of a packet on one side.

use millrace_dataplane::packet::Fate;

use crate::distributed::Saw;

/// A number that an allocator had leased and that stands in a packet afterwards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// where in the frame: offset of its first byte
    pub at: usize,
    /// bytes of the number in the frame, 2 or 4; 1, of those that changed, where it is added to an address
    pub bytes: usize,
    /// the allocator, by its index in the program
    pub object: usize,
    /// the number
    pub number: u64,
    /// the value kept with it
    pub value: Vec<u8>,
    /// whether the packet had another number there before; it may happen to be the one that was leased
    pub changed: bool,
}

/// Outcome of a packet on one side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// its fate
    pub fate: Fate,
    /// its bytes afterwards
    pub bytes: Vec<u8>,
    /// records that the program left while it had the packet: object and content
    pub records: Vec<(usize, Vec<u8>)>,
    /// leased numbers that the packet holds
    pub leases: Vec<Written>,
    /// the worker that did it; 0 on the sequential side
    pub worker: u32,
    /// how many packets this side had done before
    pub turn: u64,
    /// where workers share state: its place in the order in which one worker could have done the packets of all;
    /// else 0. Even numbers are those of packets that wrote
    pub commit: u64,
    /// the time that the program had for it, ns: that of its arrival, or where workers share state of its place in
    /// their order
    pub time: u64,
    /// what it saw of other workers' parts of numbers, where that is noted
    pub saw: Option<Box<Saw>>,
}
