//! The packets that take a path: by port and by the kind that a NIC takes them for, as far as the path's guard
//! says. What the guard leaves open is taken for possible.

mod course;
mod guard;
mod icmp;
mod kinds;
mod odd;
mod view;

use std::rc::Rc;

use millrace_model::expr::ExprId;
use millrace_model::expr::sets::{Place, Set};
use millrace_model::known::Known;
use millrace_steer::{Field, Kind, Ports};

use crate::memo::{Bytes, Memo};
use crate::offset::Offset;

pub(crate) use course::{Course, views};
pub(crate) use guard::{conditions, conjuncts, last_byte, of_packet, stated};
pub(crate) use kinds::{FRAGMENT, kinds_of};

/// Next headers of IPv6 that other headers follow (crates/steer, fields.rs).
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];

pub(crate) const TRANSPORTS: [u8; 3] = [6, 17, 132];

/// The protocol of packets whose kind says it.
pub(crate) fn transport_of(kind: Kind) -> Option<u8> {
    let families = [Family::V4, Family::V6].map(kinds_of);
    let mut places = families
        .iter()
        .filter_map(|all| all.iter().position(|k| *k == kind));
    TRANSPORTS.get(places.next()?).copied()
}

/// Packets of one kind at one port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Packets {
    /// index of the port
    pub port: usize,
    /// what the NIC takes them for; of an ICMP error that is steered as the answer to what it carries: that
    /// answer's kind
    pub kind: Kind,
}

/// The version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// Where in a header the protocol behind it is named.
    pub fn protocol(self) -> i64 {
        match self {
            Self::V4 => 9,
            Self::V6 => 6,
        }
    }

    /// The number of ICMP, and types of its messages that carry the packet that they are about (RFC 792, RFC 4443).
    pub fn icmp(self) -> (u8, &'static [u8]) {
        match self {
            Self::V4 => (1, &[3, 4, 5, 11, 12]),
            Self::V6 => (58, &[1, 2, 3, 4]),
        }
    }
}

/// How the packet lies in memory, for some of a path's packets.
#[derive(Clone)]
pub(crate) struct View {
    /// the version; none for what is not IP
    pub family: Option<Family>,
    /// offset of the network header
    pub at: i64,
    /// values that bytes can have as far as the path's guard says
    known: Rc<Known>,
    /// and those of bytes of which more is known of these packets
    told: Rc<Vec<(Place, Set)>>,
    /// the bytes of which one value only is possible
    fixed: Rc<Bytes>,
    /// the furthest bytes that the packet has for certain: the path has read them, or compared its length with them
    read: Rc<Vec<Offset>>,
    /// what is known of expressions
    pub memo: Rc<Memo>,
    /// the packet is so long at least
    length: i64,
    /// what the path's guard says of the packet
    pub guard: Rc<Vec<ExprId>>,
    /// nothing that the path does depends on what kind of packet it is
    any: bool,
    /// an extension header follows the IPv6 header
    pub extended: bool,
    /// the same of the packet that an ICMPv6 error carries
    pub carries_extended: bool,
    /// they are ICMP echoes, or errors that carry one, and their identifier counts as this port of UDP
    pub echo: Option<Field>,
    /// they are odd: the program reads headers that it does not check, and takes ports from there
    pub odd: Option<Ports>,
}

/// The class by which a packet is steered. Where software looks inside packets, ICMP errors go as answers
/// and first fragments as whole packets; where it does not, both go as the NIC takes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Way {
    /// what it is, either way
    Plain,
    /// if looked inside: an ICMP error, as the answer to the packet that it carries
    Answer,
    /// if looked inside: a first fragment, as the packet that it begins
    Whole,
    /// if not looked inside: an ICMP error or a first fragment
    Rough,
}
