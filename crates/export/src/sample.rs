//! What is counted of a sampled packet.

use std::sync::Arc;

use millrace_dataplane::packet::Fate;
use millrace_dataplane::worker::watch::Sight;
use millrace_wire::{Layers, Rule, Stop, Version, ipv4, ipv6, protocol, walk};

/// Addresses and ports of a packet as it came in. Ports of ICMP are 0 and type * 256 + code, as collectors expect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ends {
    /// IPv4: source, destination
    V4([u8; 4], [u8; 4]),
    /// IPv6: source, destination
    V6([u8; 16], [u8; 16]),
    /// neither: source and destination of the frame, and its EtherType (0: none)
    Link([u8; 6], [u8; 6], u16),
}

/// What the packets of a flow have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// addresses
    pub ends: Ends,
    /// protocol of IP
    pub protocol: u8,
    /// type of service, or traffic class
    pub class: u8,
    /// ports
    pub ports: (u16, u16),
    /// the port of the run that it came in at
    pub ingress: u32,
    /// what became of it
    pub fate: Fate,
    /// the element that decided
    pub element: Arc<str>,
    /// why it was dropped
    pub reason: Option<Arc<str>>,
    /// the line that dropped it, `FILE:LINE`
    pub line: Option<Arc<str>>,
}

/// A packet, as far as it is counted.
#[derive(Clone, Debug)]
pub struct Sample {
    /// its flow
    pub key: Key,
    /// bytes from the header of IP on; of the frame where there is none
    pub octets: u64,
    /// bytes of the frame
    pub frame: u64,
    /// when it came, ns since the epoch
    pub time: u64,
    /// flags of TCP
    pub flags: u8,
}

/// The headers of a packet that has come in.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// addresses
    pub ends: Ends,
    /// protocol of IP
    pub protocol: u8,
    /// type of service, or traffic class
    pub class: u8,
    /// ports
    pub ports: (u16, u16),
    /// flags of TCP
    pub flags: u8,
    /// bytes from the header of IP on
    pub octets: u64,
}

impl Headers {
    /// Reads them, whatever the bytes.
    #[must_use]
    pub fn of(sight: &Sight<'_>) -> Self {
        let frame = sight.frame;
        let layers = walk(frame, Rule::NIC);
        let wire = u64::from(sight.wire);
        let Some(ip) = layers.ip else {
            return Self {
                ends: Ends::Link(
                    part(frame, 6),
                    part(frame, 0),
                    layers.link.ethertype.unwrap_or(0),
                ),
                protocol: 0,
                class: 0,
                ports: (0, 0),
                flags: 0,
                octets: wire,
            };
        };
        let at = |from: usize| frame.get(ip.at + from).copied().unwrap_or(0);
        let word = |from: usize| u16::from_be_bytes([at(from), at(from + 1)]);
        let (ends, class, octets) = match ip.version {
            Version::V4 => (
                Ends::V4(
                    part(frame, ip.at + ipv4::SOURCE.start),
                    part(frame, ip.at + ipv4::DESTINATION.start),
                ),
                at(1),
                u64::from(word(2)),
            ),
            Version::V6 => (
                Ends::V6(
                    part(frame, ip.at + ipv6::SOURCE.start),
                    part(frame, ip.at + ipv6::DESTINATION.start),
                ),
                (word(0) >> 4) as u8,
                u64::from(word(4)) + ipv6::HEADER as u64,
            ),
        };
        let (ports, flags) = upper(frame, &layers);
        Self {
            ends,
            protocol: ip.upper.map_or(0, |u| u.protocol),
            class,
            ports,
            flags,
            octets,
        }
    }
}

/// Ports, and the flags of TCP.
fn upper(frame: &[u8], layers: &Layers) -> ((u16, u16), u8) {
    let upper = layers.ip.and_then(|ip| ip.upper);
    let known = matches!(layers.stop, Stop::Transport | Stop::Error);
    let Some(upper) = upper.filter(|_| known) else {
        return ((0, 0), 0);
    };
    let at = |from: usize| frame.get(upper.at + from).copied().unwrap_or(0);
    let word = |from: usize| u16::from_be_bytes([at(from), at(from + 1)]);
    match upper.protocol {
        protocol::TCP => ((word(0), word(2)), at(13)),
        protocol::UDP => ((word(0), word(2)), 0),
        _ => ((0, word(0)), 0),
    }
}

fn part<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let bytes = frame.get(at..at + N).and_then(|b| b.try_into().ok());
    bytes.unwrap_or([0; N])
}
