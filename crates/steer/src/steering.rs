//! The whole of a port's steering: what the NIC does, and what the core that received a packet does where the
//! NIC cannot.

use std::collections::BTreeMap;

use crate::carried::answered;
use crate::fields::{Kind, Parsed, parse, parse_whole};
use crate::rss::Rss;

/// Which core a port's packets belong to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steering {
    /// what the NIC does
    pub nic: Rss,
    /// kinds that the receiving core hashes itself and hands over, and how it hashes them
    pub software: BTreeMap<Kind, Rss>,
    /// the receiving core looks inside: ICMP errors go where the answer to the packet that they carry would
    /// go, and first fragments of IPv4 where the whole packet would
    pub inside: bool,
}

impl Steering {
    /// The core that a frame belongs to.
    #[must_use]
    pub fn queue(&self, frame: &[u8]) -> u32 {
        let parsed = taken_for(frame, self.inside);
        let rss = self.software.get(&parsed.kind).unwrap_or(&self.nic);
        rss.queue_of(&parsed)
    }

    /// The hash whose last bits are a frame's index into the indirection table; 0 where nothing of its kind is
    /// hashed.
    #[must_use]
    pub fn hash(&self, frame: &[u8]) -> u32 {
        let parsed = taken_for(frame, self.inside);
        let rss = self.software.get(&parsed.kind).unwrap_or(&self.nic);
        rss.hash_of(&parsed)
    }

    /// Whether the NIC may have brought a frame to another core than the one that it belongs to.
    #[must_use]
    pub fn in_software(&self, frame: &[u8]) -> bool {
        if self.software.is_empty() && !self.inside {
            return false;
        }
        let own = parse(frame);
        self.software.contains_key(&own.kind) || (self.inside && taken_for(frame, true) != own)
    }
}

/// The fields that decide about a frame; `inside` as in [`Steering::inside`].
pub(crate) fn taken_for(frame: &[u8], inside: bool) -> Parsed {
    if !inside {
        return parse(frame);
    }
    let whole = parse_whole(frame);
    let other = matches!(whole.kind, Kind::Ipv4 | Kind::Ipv6);
    let answer = if other { answered(frame) } else { None };
    answer.unwrap_or(whole)
}
