//! The whole of a port's steering: what the NIC does, and what the core that received a packet does where the
//! NIC cannot.

use std::collections::BTreeMap;

use millrace_wire::{Rule, walk};

use crate::carried::{answered_of, identified};
use crate::fields::{Kind, Parsed, of_layers, parse};
use crate::odd::Odd;
use crate::rss::Rss;

/// Owner of a port's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steering {
    /// what the NIC does
    pub nic: Rss,
    /// kinds that the receiving core hashes itself and hands over, and how it hashes them
    pub software: BTreeMap<Kind, Rss>,
    /// the receiving core looks inside: ICMP errors go where the answer to the packet that they carry would
    /// go, and first fragments of IPv4 where the whole packet would
    pub inside: bool,
    /// the receiving core looks for the identifiers of ICMP echoes over IPv4, see [`crate::carried::echo`]
    pub echoes: bool,
    /// the receiving core reads packets as the program does where a NIC reads them otherwise; of the odd kinds that
    /// this makes those count which `software` has
    pub odd: Option<Odd>,
}

impl Steering {
    /// Whether any two packets that this brings together the other one does too, as it has the same key and reads the same of each; tables
    /// may differ.
    #[must_use]
    pub fn hashes_as(&self, other: &Self) -> bool {
        let software = self.software.iter().zip(&other.software);
        let alike = |((kind, own), (of, theirs)): ((&Kind, &Rss), (&Kind, &Rss))| {
            kind == of && own.hashes_as(theirs)
        };
        self.nic.hashes_as(&other.nic)
            && self.software.len() == other.software.len()
            && { software }.all(alike)
            && (self.inside, self.echoes, self.odd) == (other.inside, other.echoes, other.odd)
    }

    /// The core that a frame belongs to.
    #[must_use]
    pub fn queue(&self, frame: &[u8]) -> u32 {
        let parsed = self.read(frame);
        let rss = self.software.get(&parsed.kind).unwrap_or(&self.nic);
        rss.queue_of(&parsed)
    }

    /// The hash whose last bits are a frame's index into the indirection table; 0 where nothing of its kind is
    /// hashed.
    #[must_use]
    pub fn hash(&self, frame: &[u8]) -> u32 {
        let parsed = self.read(frame);
        let rss = self.software.get(&parsed.kind).unwrap_or(&self.nic);
        rss.hash_of(&parsed)
    }

    /// The place in the indirection table of a packet that was read before.
    #[must_use]
    pub fn index_of(&self, parsed: &Parsed) -> u32 {
        let rss = self.software.get(&parsed.kind).unwrap_or(&self.nic);
        rss.index_of(parsed)
    }

    /// The part of a frame that decides its owner: frames that are read alike belong to one core.
    ///
    /// The kind and the fields are those that the NIC reads, or the receiving core where it looks closer, so that packets
    /// which a person takes for one flow may be read otherwise: an echo's request and a reply with the same identifier
    /// from the same host, a packet with options of IPv4 where ports are taken from a fixed place, a fragment.
    #[must_use]
    pub fn read(&self, frame: &[u8]) -> Parsed {
        let own = taken_for(frame, self.inside, self.echoes);
        let odd = self.odd.and_then(|odd| odd.read(frame, &own));
        let counts = |p: &Parsed| self.software.contains_key(&p.kind);
        odd.filter(counts).unwrap_or(own)
    }
}

/// The fields that decide about a frame; `inside` and `echoes` as in [`Steering`].
#[inline]
pub(crate) fn taken_for(frame: &[u8], inside: bool, echoes: bool) -> Parsed {
    closer(frame, parse(frame), inside, echoes)
}

/// The same of a packet that a NIC takes for `own`.
#[inline]
pub(crate) fn closer(frame: &[u8], own: Parsed, inside: bool, echoes: bool) -> Parsed {
    // Most packets have ports: those without are walked a second time, so that the first walk need not be kept.
    let looks = match own.kind {
        Kind::Ipv4 => inside || echoes,
        Kind::Ipv4Fragment | Kind::Ipv6 => inside,
        _ => false,
    };
    if looks {
        look(frame, inside, echoes)
    } else {
        own
    }
}

#[inline(never)]
fn look(frame: &[u8], inside: bool, echoes: bool) -> Parsed {
    let layers = walk(frame, Rule::NIC);
    let own = of_layers(frame, &layers, inside);
    if !matches!(own.kind, Kind::Ipv4 | Kind::Ipv6) {
        return own;
    }
    let answer = inside
        .then(|| answered_of(frame, &layers, echoes))
        .flatten();
    let taken = answer.or_else(|| echoes.then(|| identified(frame, &layers, own)).flatten());
    taken.unwrap_or(own)
}
