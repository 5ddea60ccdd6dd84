//! The whole of a port's steering: what the NIC does, and what the core that received a packet does where the
//! NIC cannot.

use std::collections::BTreeMap;

use crate::carried::answered;
use crate::fields::{Kind, parse};
use crate::rss::Rss;

/// Which core a port's packets belong to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steering {
    /// what the NIC does
    pub nic: Rss,
    /// kinds that the receiving core hashes itself and hands over, and how it hashes them
    pub software: BTreeMap<Kind, Rss>,
    /// ICMP errors go where the answer to the packet that they carry would go, which the receiving core
    /// finds out
    pub errors: bool,
}

impl Steering {
    /// The core that a frame belongs to.
    #[must_use]
    pub fn queue(&self, frame: &[u8]) -> u32 {
        let mut parsed = parse(frame);
        if self.errors
            && matches!(parsed.kind, Kind::Ipv4 | Kind::Ipv6)
            && let Some(answer) = answered(frame)
        {
            parsed = answer;
        }
        let rss = self.software.get(&parsed.kind).unwrap_or(&self.nic);
        rss.queue_of(&parsed)
    }

    /// Whether the NIC may have brought a frame to another core than the one that it belongs to.
    #[must_use]
    pub fn in_software(&self, frame: &[u8]) -> bool {
        if self.software.is_empty() && !self.errors {
            return false;
        }
        let kind = parse(frame).kind;
        self.software.contains_key(&kind)
            || (self.errors && matches!(kind, Kind::Ipv4 | Kind::Ipv6) && answered(frame).is_some())
    }
}
