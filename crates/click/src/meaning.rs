//! What elements do to a packet, as data: what is synthesised from a configuration is made from this, so that it comes from
//! the same arguments as the interpreter's elements.
//!
//! What makes, copies or holds packets, or remembers them, is [`Meaning::Outside`]: the interpreter runs its packets, on the slow path. An
//! element that acts on others (it calls handlers, writes files, makes packets of its own) has no meaning, and is refused by name and
//! place.

use std::sync::Arc;

use crate::filter::Condition;
use crate::function::Decided;
use crate::packet::Kind;
use crate::rewriter::{Specification, Timeouts};

/// A route of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// address, host order, masked
    pub address: u32,
    /// mask, host order
    pub mask: u32,
    /// what the destination annotation becomes
    pub gateway: Option<[u8; 4]>,
    /// the output
    pub output: usize,
}

/// A clause of a pattern of bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clause {
    /// the first byte, from the packet's front
    pub offset: usize,
    /// bits of each byte that count
    pub mask: Vec<u8>,
    /// their values
    pub value: Vec<u8>,
    /// whether it holds for packets that do not fit
    pub negated: bool,
}

/// Where an address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// bytes from the packet's front
    Front(usize),
    /// bytes from the network header
    Network(usize),
}

/// What a rewriter does, without its table.
#[derive(Clone, Debug)]
pub struct Rewriting {
    /// by input
    pub inputs: Vec<Specification>,
    /// the patterns of inputs that name a mapper, by input
    pub mappers: Vec<Option<usize>>,
    /// ages of mappings
    pub timeouts: Timeouts,
    /// mappings, at most
    pub capacity: usize,
    /// whether all flows age as those of UDP
    pub udp: bool,
    /// whether only TCP has flows
    pub tcp: bool,
    /// whether the destination annotation follows the destination address
    pub destination: bool,
    /// why the table cannot be held by two maps
    pub unusual: Option<&'static str>,
}

/// What an element does to a packet. Outputs that are not connected drop it.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// it leaves by output 0 as it is; what queues, counters and schedulers do
    Pass,
    /// it leaves by output 0 as it is, if there is one; something is printed, or written to a file
    Shows,
    /// it leaves by this output, or is dropped
    Switch(Option<usize>),
    /// it enters here, its link header marked, its kind by the Ethernet destination
    Enter(String),
    /// it leaves the configuration here
    Leave(String),
    /// it leaves one configuration and enters the next: by output 0, as if it had been received there
    Wire,
    /// it is dropped
    Drop,
    /// bytes are taken from the front
    Strip(usize),
    /// bytes are put back at the front
    Unstrip(usize),
    /// all in front of the network header is taken
    StripToNetwork,
    /// the network header is marked, so many bytes from the front
    Mark(usize),
    /// the link header is marked
    MarkLink(usize),
    /// the IP header is checked, padding cut, the destination annotation set; bad ones to output 1
    Check {
        /// bytes from the front
        offset: usize,
        /// bad source addresses
        bad: Vec<[u8; 4]>,
        /// destinations of which the source address does not matter
        good: Vec<[u8; 4]>,
        /// whether the header's sum has to hold
        checksum: bool,
    },
    /// the time to live is lowered; expired packets to output 1
    Ttl {
        /// whether packets to groups are lowered, too
        multicast: bool,
    },
    /// the first condition that holds has the output; none drops
    Filter(Vec<(Option<usize>, Condition)>),
    /// the first pattern that fits has the output
    Bytes(Vec<Vec<Clause>>),
    /// the longest route of the destination annotation has the output
    Lookup(Vec<Route>),
    /// a header is put in front, and marked as the link header
    Prepend(Vec<u8>),
    /// the first bytes of the link header, where it is marked, or of the packet are written
    OverwriteLink(Vec<u8>),
    /// broadcasts and multicasts of the link are dropped
    Broadcasts,
    /// the destination annotation becomes an address of the packet
    GetDestination(Address),
    /// the destination annotation becomes this
    SetDestination([u8; 4]),
    /// the source or destination address is written, sums updated: this address or the annotation
    StoreAddress(usize, Option<[u8; 4]>),
    /// the network header's second byte is written under a mask, its sum updated
    Service {
        /// bits that change
        mask: u8,
        /// what they become
        value: u8,
    },
    /// bytes are written, so many from the packet's front; packets that do not have them go to output 1
    Write {
        /// bytes from the packet's front
        at: usize,
        /// what is written
        bytes: Vec<u8>,
    },
    /// packets of more bytes go to output 1
    Long(usize),
    /// the packet's type is written
    Kind(Kind),
    /// the packet's type is by its Ethernet destination; those of others go to output 1
    Addressed {
        /// whose frames
        mine: [u8; 6],
        /// whether those from there are others', too
        own: bool,
        /// whether those to other hosts are others'; else only their type says so
        other: bool,
    },
    /// an annotation's byte is written
    Paint(usize, u8),
    /// packets with this byte in an annotation to output 0, others to output 1
    CheckPaint(usize, u8),
    /// the output is an annotation's byte
    PaintSwitch(usize),
    /// packets with this byte in an annotation are copied: that cannot be synthesised
    PaintTee(usize, u8),
    /// packets that are longer are cut to pieces, which cannot be synthesised; with Don't Fragment to output 1
    Fragment {
        /// bytes from the network header on
        mtu: usize,
        /// whether Don't Fragment counts
        honor: bool,
    },
    /// options are handled, which cannot be synthesised
    Options,
    /// the source address is written if an annotation asks for it, which only ICMPError does
    FixSource,
    /// flows are rewritten
    Rewrite(Box<Rewriting>),
    /// patterns of new flows in turn
    Mapper(Vec<Specification>),
    /// what a function of another dialect does
    Function(Arc<Decided>),
    /// packets are given to the host
    Host,
    /// it makes, copies or holds packets: why
    Outside(&'static str),
    /// no packets pass it
    Silent,
    /// no packets pass it; something is printed, or written to a file
    Says,
}
