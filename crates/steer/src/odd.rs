//! Odd packets: those that a NIC reads otherwise than the program does.
//!
//! Most XDP code looks at the EtherType and then takes addresses and ports from fixed places, whatever the version,
//! the header's length and the fragment's offset say. A NIC, and [`crate::fields::parse`], take such packets for
//! something else. Where the program keeps state by these bytes, whoever steers has to take the same ones: an odd
//! packet has the fields that the program reads, and the same protocol byte tells its kind. A byte that the frame does
//! not have is 0; no program reads it.

use millrace_wire::Version;
use millrace_wire::protocol::{ICMP, ICMPV6, SCTP, TCP, UDP};
use millrace_wire::{ipv4, ipv6};

use crate::fields::{Kind, Parsed, network};

/// How a program reads headers that it does not check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Odd {
    /// where it takes the ports from
    pub ports: Ports,
    /// it reads ports of packets that have none for a NIC: all but whole packets of TCP, UDP and SCTP are odd. If not,
    /// only those are that a NIC does not take for IP
    pub every: bool,
}

/// Where a program takes the ports of IPv4 from. Those of IPv6 it takes from behind the fixed header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ports {
    /// 20 bytes behind the first one of the header: a header with options is odd
    Fixed,
    /// behind as many words as the header says, also if that is less than a header has
    Behind,
}

impl Odd {
    /// The packet as the program reads it; none where the NIC, for which it is `own`, reads the same.
    #[must_use]
    pub fn read(self, frame: &[u8], own: &Parsed) -> Option<Parsed> {
        if !self.every && own.kind != Kind::NotIp {
            return None;
        }
        let (version, packet) = network(frame)?;
        let byte = |at: usize| packet.get(at).copied().unwrap_or(0);
        let from = |at: usize, bytes: usize| {
            let end = packet.len().min(at + bytes);
            packet.get(at..end).unwrap_or(&[])
        };
        if version == Version::V4 {
            let header = ipv4::header_bytes(byte(0));
            let with_ports = matches!(own.kind, Kind::Ipv4Tcp | Kind::Ipv4Udp | Kind::Ipv4Sctp);
            if with_ports && (self.ports == Ports::Behind || header == ipv4::HEADER) {
                return None;
            }
            let kind = match byte(ipv4::PROTOCOL) {
                TCP => Kind::Ipv4OddTcp,
                UDP => Kind::Ipv4OddUdp,
                ICMP => Kind::Ipv4OddIcmp,
                _ => Kind::Ipv4Odd,
            };
            let ports = match self.ports {
                Ports::Fixed => ipv4::HEADER,
                Ports::Behind => header,
            };
            let [source, destination] =
                [ipv4::SOURCE, ipv4::DESTINATION].map(|at| from(at.start, 4));
            let [first, second] = [ports, ports + 2].map(|at| from(at, 2));
            return Some(Parsed::of(kind, [source, destination, first, second]));
        }
        let with_ports = matches!(own.kind, Kind::Ipv6Tcp | Kind::Ipv6Udp | Kind::Ipv6Sctp);
        if with_ports && matches!(byte(ipv6::NEXT), TCP | UDP | SCTP) {
            return None;
        }
        let kind = match byte(ipv6::NEXT) {
            TCP => Kind::Ipv6OddTcp,
            UDP => Kind::Ipv6OddUdp,
            ICMPV6 => Kind::Ipv6OddIcmp,
            _ => Kind::Ipv6Odd,
        };
        let [source, destination] = [ipv6::SOURCE, ipv6::DESTINATION].map(|at| from(at.start, 16));
        let [first, second] = [ipv6::HEADER, ipv6::HEADER + 2].map(|at| from(at, 2));
        Some(Parsed::of(kind, [source, destination, first, second]))
    }
}

#[cfg(test)]
mod tests;
