//! Where the ends of a flow stand in a frame, so that an answer can be sent to where a packet came from.
//!
//! TCP, UDP and ICMP echoes over IPv4, TCP and UDP over IPv6 without extension headers, behind any VLAN tags;
//! no fragments. An echo's identifier stands for both ports.

use std::ops::Range;

use millrace_wire::checksum::{replace, replace_udp};
use millrace_wire::protocol::{ICMP, TCP, UDP, checksum_at, covers_addresses};
pub use millrace_wire::word;
use millrace_wire::{Fragment, Ip, Rule, Version, icmpv4, ipv4, put, walk};

/// The two ends of a flow, as bytes of a frame.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Tuple {
    /// IP protocol
    pub protocol: u8,
    /// who sent it
    pub source: End,
    /// who it is for
    pub destination: End,
}

/// One end.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct End {
    /// 4 or 16 bytes
    pub address: Vec<u8>,
    /// port, or an echo's identifier
    pub port: u16,
}

impl Tuple {
    /// The same flow, the other way.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            protocol: self.protocol,
            source: self.destination.clone(),
            destination: self.source.clone(),
        }
    }
}

/// Where everything stands in a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    protocol: u8,
    source: Range<usize>,
    destination: Range<usize>,
    source_port: usize,
    destination_port: usize,
    /// of IPv4
    header_sum: Option<usize>,
    /// of TCP, UDP or ICMP
    transport_sum: usize,
    /// whether the transport's checksum covers the addresses
    pseudo: bool,
}

/// Where the ports of an upper layer are, and its checksum; none of what has none here. Of an echo (RFC 792) the
/// identifier is both ports.
fn upper(frame: &[u8], ip: &Ip) -> Option<(u8, (usize, usize), usize)> {
    let upper = ip.upper?;
    let ports = match (upper.protocol, ip.version) {
        (TCP | UDP, _) => (upper.at, upper.at + 2),
        (ICMP, Version::V4)
            if matches!(frame.get(upper.at)?, &icmpv4::REPLY | &icmpv4::REQUEST) =>
        {
            let identifier = upper.at + icmpv4::IDENTIFIER;
            (identifier, identifier)
        }
        _ => return None,
    };
    let sum = upper.at + checksum_at(upper.protocol)?;
    Some((upper.protocol, ports, sum))
}

impl Places {
    /// Whether a number here is at the source's port or identifier, or at the destination's (true); none: elsewhere.
    #[must_use]
    pub fn side_of(&self, at: usize) -> Option<bool> {
        if at == self.source_port {
            Some(false)
        } else {
            (at == self.destination_port).then_some(true)
        }
    }

    /// Whether a number here is an echo's identifier, which stands for both ports.
    #[must_use]
    pub fn is_echo(&self, at: usize) -> bool {
        at == self.source_port && at == self.destination_port
    }

    /// Gives one end another port; of an echo the identifier.
    pub fn write_port(&self, frame: &mut [u8], destination: bool, port: u16) {
        let Some(mut tuple) = self.tuple(frame) else {
            return;
        };
        let echo = self.source_port == self.destination_port;
        if echo || destination {
            tuple.destination.port = port;
        }
        if echo || !destination {
            tuple.source.port = port;
        }
        self.write(frame, &tuple);
    }

    /// Of a frame; none when it is of no flow that is known here, or is cut short before the end of its
    /// ports and checksum.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        // Fragments, the first one too: those behind it have no ports.
        let whole = |ip: &Ip| ip.fragment == Fragment::Whole && ip.extensions == 0;
        let ip = walk(frame, Rule::WRITTEN).ip.filter(whole)?;
        let (protocol, ports, sum) = upper(frame, &ip)?;
        word(frame, sum)?;
        word(frame, ports.1)?;
        let addresses = ip.addresses();
        let middle = addresses.start + addresses.len() / 2;
        Some(Self {
            protocol,
            source: addresses.start..middle,
            destination: middle..addresses.end,
            source_port: ports.0,
            destination_port: ports.1,
            header_sum: (ip.version == Version::V4).then_some(ip.at + ipv4::CHECKSUM),
            transport_sum: sum,
            pseudo: covers_addresses(protocol),
        })
    }

    /// The flow.
    #[must_use]
    pub fn tuple(&self, frame: &[u8]) -> Option<Tuple> {
        let end = |address: &Range<usize>, port| {
            Some(End {
                address: frame.get(address.clone())?.to_vec(),
                port: word(frame, port)?,
            })
        };
        Some(Tuple {
            protocol: self.protocol,
            source: end(&self.source, self.source_port)?,
            destination: end(&self.destination, self.destination_port)?,
        })
    }

    /// Makes a frame one of another flow of the same protocol and family, and puts its checksums right by
    /// what changed (RFC 1624): one that was wrong stays wrong, and a UDP datagram without one stays so.
    pub fn write(&self, frame: &mut [u8], tuple: &Tuple) {
        let ends = [
            (&self.source, self.source_port, &tuple.source),
            (&self.destination, self.destination_port, &tuple.destination),
        ];
        let echo = self.source_port == self.destination_port;
        for (n, (address, port, end)) in ends.into_iter().enumerate() {
            for (i, pair) in end.address.chunks_exact(2).enumerate() {
                let to = u16::from_be_bytes([pair[0], pair[1]]);
                let sums = (self.header_sum, self.pseudo);
                self.replace(frame, address.start + 2 * i, to, sums);
            }
            if !(echo && n == 1) {
                self.replace(frame, port, end.port, (None, true));
            }
        }
    }

    /// Replaces a word and fixes the IPv4 header's and the transport's checksum, where they cover it.
    fn replace(&self, frame: &mut [u8], at: usize, to: u16, sums: (Option<usize>, bool)) {
        let Some(from) = word(frame, at) else {
            return;
        };
        put(frame, at, to);
        if let Some(header) = sums.0 {
            follow(frame, header, from, to);
        }
        if sums.1 {
            transport(frame, self.protocol, self.transport_sum, from, to);
        }
    }
}

/// A transport's checksum follows a word. A UDP datagram without one stays without, and one that has one keeps it: a
/// sum of zero is written as all ones (RFC 768).
fn transport(frame: &mut [u8], protocol: u8, at: usize, from: u16, to: u16) {
    if protocol != UDP {
        return follow(frame, at, from, to);
    }
    if let Some(sum) = word(frame, at) {
        put(frame, at, replace_udp(sum, from, to));
    }
}

/// The packet of IPv4 that an ICMP error carries: which flow it is of, and where that stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carried {
    /// the error's own checksum
    error_sum: usize,
    protocol: u8,
    source: Range<usize>,
    source_port: usize,
    transport_sum: usize,
}

impl Carried {
    /// Of a frame; none when it is no such error, or is cut short before the carried packet's ports.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let layers = walk(frame, Rule::WRITTEN);
        let outer = layers.ip.filter(|ip| ip.version == Version::V4)?;
        let ip = layers.inner(frame, Rule::WRITTEN)?.ip?;
        if ip.fragment == Fragment::Later {
            return None;
        }
        let (protocol, (port, _), sum) = upper(frame, &ip)?;
        word(frame, port)?;
        Some(Self {
            error_sum: outer.upper?.at + checksum_at(ICMP)?,
            protocol,
            source: ip.at + ipv4::SOURCE.start..ip.at + ipv4::SOURCE.end,
            source_port: port,
            transport_sum: sum,
        })
    }

    /// Protocol, address and port (or identifier) of who sent the carried packet.
    #[must_use]
    pub fn sender(&self, frame: &[u8]) -> Option<(u8, End)> {
        let end = End {
            address: frame.get(self.source.clone())?.to_vec(),
            port: word(frame, self.source_port)?,
        };
        Some((self.protocol, end))
    }

    /// Gives the carried packet's sender another port, and follows it in the checksums that are there.
    pub fn write_port(&self, frame: &mut [u8], to: u16) {
        let Some(from) = word(frame, self.source_port) else {
            return;
        };
        put(frame, self.source_port, to);
        follow(frame, self.error_sum, from, to);
        // TCP's checksum may lie beyond the end.
        if let Some(before) = word(frame, self.transport_sum) {
            transport(frame, self.protocol, self.transport_sum, from, to);
            let after = word(frame, self.transport_sum).unwrap_or(before);
            follow(frame, self.error_sum, before, after);
        }
    }
}

/// A checksum follows a word that it covers.
fn follow(frame: &mut [u8], at: usize, from: u16, to: u16) {
    if let Some(sum) = word(frame, at) {
        put(frame, at, replace(sum, from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_traffic::language::packet;

    #[test]
    fn a_flow_is_read_and_written() {
        for (text, other) in [
            (
                "eth / ip 10.0.0.1 > 192.0.2.1 / udp 1000 > 53 / payload \"abc\"",
                "eth / ip 198.51.100.7 > 203.0.113.9 / udp 7 > 65535 / payload \"abc\"",
            ),
            (
                "eth / ip 10.0.0.1 > 192.0.2.1 / tcp 1000 > 80",
                "eth / ip 10.9.8.7 > 192.0.2.1 / tcp 1 > 80",
            ),
            (
                "eth / ip6 fd00::1 > 2001:db8::1 / udp 1000 > 53 / payload \"x\"",
                "eth / ip6 fd00::2 > 2001:db8::9 / udp 1001 > 54 / payload \"x\"",
            ),
        ] {
            let (mut frame, other) = (packet(text).unwrap(), packet(other).unwrap());
            let tuple = Places::of(&other).unwrap().tuple(&other).unwrap();
            let places = Places::of(&frame).unwrap();
            assert_ne!(places.tuple(&frame).unwrap(), tuple);
            places.write(&mut frame, &tuple);
            // Addresses, ports and every checksum are those of the packet written from scratch.
            assert_eq!(frame, other, "{text}");
        }
    }

    #[test]
    fn a_datagram_without_a_checksum_stays_without() {
        let mut frame =
            packet("eth / ip 10.0.0.1 > 192.0.2.1 / udp 1 > 2 / payload \"a\"").unwrap();
        frame[40..42].fill(0);
        let places = Places::of(&frame).unwrap();
        let mut tuple = places.tuple(&frame).unwrap();
        tuple.source.port = 99;
        places.write(&mut frame, &tuple);
        assert_eq!(word(&frame, 34), Some(99));
        assert_eq!(word(&frame, 40), Some(0));
    }

    #[test]
    fn a_checksum_that_comes_out_as_zero_is_all_ones() {
        let mut frame =
            packet("eth / ip 10.0.0.1 > 192.0.2.1 / udp 1 > 2 / payload \"a\"").unwrap();
        let places = Places::of(&frame).unwrap();
        let before = word(&frame, 40).unwrap();
        let mut tuple = places.tuple(&frame).unwrap();
        // One's complement: what the sum lacks goes into the port.
        let lacking = u32::from(before) + 1;
        tuple.source.port = ((lacking & 0xffff) + (lacking >> 16)) as u16;
        places.write(&mut frame, &tuple);
        assert_eq!(word(&frame, 40), Some(0xffff));
    }

    #[test]
    fn who_sent_what_an_error_carries_gets_another_port() {
        for inner in [
            "udp 1000 > 53 / payload \"abcdefgh\"",
            "tcp 1000 > 80",
            "icmp echo 1000 1",
        ] {
            let text = |port: u16| {
                let inner = inner.replace("1000", &port.to_string());
                let carried = format!("ip 192.0.2.1 > 198.51.100.7 / {inner}");
                packet(&format!(
                    "eth / ip 198.51.100.7 > 192.0.2.1 / icmp unreachable 3 / {carried}"
                ))
                .unwrap()
            };
            let mut frame = text(1000);
            let carried = Carried::of(&frame).unwrap();
            let (_, end) = carried.sender(&frame).unwrap();
            assert_eq!(
                (end.port, end.address.as_slice()),
                (1000, &[192, 0, 2, 1][..])
            );
            carried.write_port(&mut frame, 4242);
            assert_eq!(frame[34..], text(4242)[34..], "{inner}");
            for length in 0..frame.len() {
                let mut cut = frame[..length].to_vec();
                if let Some(carried) = Carried::of(&cut) {
                    carried.write_port(&mut cut, 7);
                }
            }
        }
    }

    #[test]
    fn nothing_makes_it_panic() {
        let whole = packet("eth / ip 10.0.0.1 > 192.0.2.1 / tcp 1000 > 80").unwrap();
        for length in 0..whole.len() {
            let cut = &whole[..length];
            if let Some(places) = Places::of(cut) {
                assert!(places.tuple(cut).is_some(), "{length}");
            }
        }
        assert_eq!(Places::of(&[0xff; 60]), None);
    }
}
