//! Where the ends of a flow stand in a frame, so that an answer can be sent to where a packet came from.
//!
//! TCP, UDP and ICMP echoes over IPv4, TCP and UDP over IPv6 without extension headers, behind any VLAN tags;
//! no fragments. An echo's identifier stands for both ports.

use std::ops::Range;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const MAX_TAGS: usize = 4;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

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

/// A big-endian number of 16 bits.
#[must_use]
pub fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*pair))
}

/// Where the network header begins, and what it is.
#[must_use]
pub fn network(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = 12;
    for _ in 0..=MAX_TAGS {
        let kind = word(frame, at)?;
        at += 2;
        if !VLAN.contains(&kind) {
            return Some((at, kind));
        }
        at += 2;
    }
    None
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
        let (at, kind) = network(frame)?;
        let first = *frame.get(at)?;
        let (protocol, addresses, size, transport, header_sum) = match (kind, first >> 4) {
            (IPV4, 4) => {
                let length = usize::from(first & 15) * 4;
                // Fragments, the first one too: those behind it have no ports.
                if length < 20 || word(frame, at + 6)? & 0x3fff != 0 {
                    return None;
                }
                (*frame.get(at + 9)?, at + 12, 4, at + length, Some(at + 10))
            }
            (IPV6, 6) => (*frame.get(at + 6)?, at + 8, 16, at + 40, None),
            _ => return None,
        };
        let (ports, sum, pseudo) = match (protocol, header_sum.is_some()) {
            (TCP, _) => ((transport, transport + 2), transport + 16, true),
            (UDP, _) => ((transport, transport + 2), transport + 6, true),
            // Echo request and reply (RFC 792).
            (ICMP, true) if matches!(frame.get(transport)?, 0 | 8) => {
                ((transport + 4, transport + 4), transport + 2, false)
            }
            _ => return None,
        };
        word(frame, sum)?;
        word(frame, ports.1)?;
        Some(Self {
            protocol,
            source: addresses..addresses + size,
            destination: addresses + size..addresses + 2 * size,
            source_port: ports.0,
            destination_port: ports.1,
            header_sum,
            transport_sum: sum,
            pseudo,
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
            mend(frame, header, from, to);
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
        return mend(frame, at, from, to);
    }
    if word(frame, at) != Some(0) {
        mend(frame, at, from, to);
        if word(frame, at) == Some(0) {
            put(frame, at, 0xffff);
        }
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
        let header = |at: usize| {
            let first = *frame.get(at)?;
            let length = usize::from(first & 15) * 4;
            let whole = first >> 4 == 4 && length >= 20 && word(frame, at + 6)? & 0x1fff == 0;
            whole.then_some((*frame.get(at + 9)?, at + length))
        };
        let (at, kind) = network(frame)?;
        let (protocol, error) = header(at).filter(|_| kind == IPV4)?;
        if protocol != ICMP || !matches!(frame.get(error)?, 3 | 4 | 5 | 11 | 12) {
            return None;
        }
        let at = error + 8;
        let (protocol, message) = header(at)?;
        let (port, sum) = match protocol {
            TCP => (message, message + 16),
            UDP => (message, message + 6),
            ICMP if matches!(frame.get(message)?, 0 | 8) => (message + 4, message + 2),
            _ => return None,
        };
        word(frame, port)?;
        Some(Self {
            error_sum: error + 2,
            protocol,
            source: at + 12..at + 16,
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
        mend(frame, self.error_sum, from, to);
        // TCP's checksum may lie beyond the end.
        if let Some(before) = word(frame, self.transport_sum) {
            transport(frame, self.protocol, self.transport_sum, from, to);
            let after = word(frame, self.transport_sum).unwrap_or(before);
            mend(frame, self.error_sum, before, after);
        }
    }
}

fn put(frame: &mut [u8], at: usize, to: u16) {
    if let Some(place) = frame.get_mut(at..at.saturating_add(2)) {
        place.copy_from_slice(&to.to_be_bytes());
    }
}

/// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
fn mend(frame: &mut [u8], at: usize, from: u16, to: u16) {
    let Some(sum) = word(frame, at) else {
        return;
    };
    let mut total = u32::from(!sum) + u32::from(!from) + u32::from(to);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    put(frame, at, !(total as u16));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
