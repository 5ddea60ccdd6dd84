//! From a frame to the fields that a NIC can hash.
//!
//! Headers are walked by [`Rule::NIC`]. A packet whose headers are cut short is of the kind that can still
//! be told: no ports, IP without them; no addresses, not IP.

use millrace_wire::{Fragment, Layers, Rule, Upper, Version, link, walk};
use millrace_wire::{ethernet, ipv4, ipv6, protocol};
use serde::Deserialize;

named! {
    /// Kinds of packets that a NIC distinguishes when it chooses the fields to hash.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        /// TCP over IPv4, not fragmented
        Ipv4Tcp = "ipv4-tcp",
        /// UDP over IPv4, not fragmented
        Ipv4Udp = "ipv4-udp",
        /// SCTP over IPv4, not fragmented
        Ipv4Sctp = "ipv4-sctp",
        /// a fragment over IPv4, the first one too: the ones behind it carry no ports
        Ipv4Fragment = "ipv4-fragment",
        /// any other IPv4
        Ipv4 = "ipv4",
        /// TCP over IPv6, not fragmented
        Ipv6Tcp = "ipv6-tcp",
        /// UDP over IPv6, not fragmented
        Ipv6Udp = "ipv6-udp",
        /// SCTP over IPv6, not fragmented
        Ipv6Sctp = "ipv6-sctp",
        /// a fragment over IPv6
        Ipv6Fragment = "ipv6-fragment",
        /// any other IPv6
        Ipv6 = "ipv6",
        /// not IP, or too short for addresses
        NotIp = "not-ip",
        /// named TCP over IPv4, where the NIC reads something else than the program ([`crate::odd`]); no NIC's own kind
        Ipv4OddTcp = "ipv4-odd-tcp",
        /// the same of UDP
        Ipv4OddUdp = "ipv4-odd-udp",
        /// the same of ICMP
        Ipv4OddIcmp = "ipv4-odd-icmp",
        /// the same of any other protocol
        Ipv4Odd = "ipv4-odd",
        /// named TCP over IPv6, where the NIC reads something else than the program
        Ipv6OddTcp = "ipv6-odd-tcp",
        /// the same of UDP
        Ipv6OddUdp = "ipv6-odd-udp",
        /// the same of ICMPv6
        Ipv6OddIcmp = "ipv6-odd-icmp",
        /// the same of any other next header
        Ipv6Odd = "ipv6-odd",
    }
}

impl Kind {
    /// Whether only software tells it apart, by what a program reads.
    #[must_use]
    pub fn is_odd(self) -> bool {
        // All of them stand behind the kinds of NICs.
        self > Self::NotIp
    }

    /// The kind that a NIC takes this one for when it has no rule for it: any IP packet is at least IP.
    #[must_use]
    pub fn coarser(self) -> Option<Self> {
        match self {
            Self::Ipv4Tcp | Self::Ipv4Udp | Self::Ipv4Sctp | Self::Ipv4Fragment => Some(Self::Ipv4),
            Self::Ipv6Tcp | Self::Ipv6Udp | Self::Ipv6Sctp | Self::Ipv6Fragment => Some(Self::Ipv6),
            _ => None,
        }
    }
}

named! {
    /// A header field that a NIC can hash, in the order in which it enters the hash.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Field {
        /// source address of IPv4 or IPv6
        SourceAddress = "source-address",
        /// destination address of IPv4 or IPv6
        DestinationAddress = "destination-address",
        /// source port of TCP, UDP or SCTP
        SourcePort = "source-port",
        /// destination port of TCP, UDP or SCTP
        DestinationPort = "destination-port",
    }
}

impl Field {
    /// Bits of the field in packets of a kind; 0 where the kind does not have it.
    #[must_use]
    pub fn bits(self, kind: Kind) -> usize {
        use Kind::{
            Ipv4, Ipv4Fragment, Ipv4Odd, Ipv4OddIcmp, Ipv4OddTcp, Ipv4OddUdp, Ipv4Sctp, Ipv4Tcp,
            Ipv4Udp, Ipv6Sctp, Ipv6Tcp, Ipv6Udp, NotIp,
        };
        match self {
            Self::SourceAddress | Self::DestinationAddress => match kind {
                NotIp => 0,
                Ipv4 | Ipv4Fragment | Ipv4Tcp | Ipv4Udp | Ipv4Sctp | Ipv4OddTcp | Ipv4OddUdp
                | Ipv4OddIcmp | Ipv4Odd => 32,
                _ => 128,
            },
            Self::SourcePort | Self::DestinationPort => match kind {
                Ipv4Tcp | Ipv4Udp | Ipv4Sctp | Ipv6Tcp | Ipv6Udp | Ipv6Sctp => 16,
                odd if odd.is_odd() => 16,
                _ => 0,
            },
        }
    }

    /// The field of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }
}

/// A frame's kind and the bytes of its fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Parsed {
    /// its kind
    pub kind: Kind,
    source: [u8; 16],
    destination: [u8; 16],
    ports: [u8; 4],
    address_bytes: usize,
}

impl Parsed {
    /// The bytes of a field in network order; none of a field that the kind does not have.
    #[must_use]
    pub fn field(&self, field: Field) -> &[u8] {
        let ports: &[u8] = if self.has_ports() { &self.ports } else { &[] };
        match field {
            Field::SourceAddress => self.source.get(..self.address_bytes).unwrap_or(&[]),
            Field::DestinationAddress => self.destination.get(..self.address_bytes).unwrap_or(&[]),
            Field::SourcePort => ports.get(..2).unwrap_or(&[]),
            Field::DestinationPort => ports.get(2..).unwrap_or(&[]),
        }
    }

    /// The packet that would answer this one: source and destination swapped.
    #[must_use]
    pub fn answer(self) -> Self {
        let [a, b, c, d] = self.ports;
        Self {
            source: self.destination,
            destination: self.source,
            ports: [c, d, a, b],
            ..self
        }
    }

    /// A packet of a kind with these fields, in the order of [`Field::ALL`]. Bytes beyond a field's are left out, those
    /// that are missing are zero.
    #[must_use]
    pub fn of(kind: Kind, fields: [&[u8]; 4]) -> Self {
        let mut parsed = Self {
            kind,
            address_bytes: Field::SourceAddress.bits(kind) / 8,
            ..Self::other()
        };
        for (field, bytes) in Field::ALL.into_iter().zip(fields) {
            parsed.set(field, bytes);
        }
        parsed
    }

    fn set(&mut self, field: Field, bytes: &[u8]) {
        let place: &mut [u8] = match field {
            Field::SourceAddress => &mut self.source,
            Field::DestinationAddress => &mut self.destination,
            Field::SourcePort => &mut self.ports[..2],
            Field::DestinationPort => &mut self.ports[2..],
        };
        for (to, from) in place.iter_mut().zip(bytes) {
            *to = *from;
        }
    }

    /// A packet of a kind of which nothing but this field is known; all else of it is zero. Bytes beyond the field's
    /// are left out.
    #[must_use]
    pub fn with_only(kind: Kind, field: Field, bytes: &[u8]) -> Self {
        let mut parsed = Self::of(kind, [&[]; 4]);
        parsed.set(field, bytes);
        parsed
    }

    /// The same hosts' packet of UDP over IPv4, with both ports.
    pub(crate) fn as_udp(self, ports: [u8; 4]) -> Self {
        Self {
            kind: Kind::Ipv4Udp,
            ports,
            ..self
        }
    }

    fn has_ports(&self) -> bool {
        Field::SourcePort.bits(self.kind) > 0
    }

    fn other() -> Self {
        Self {
            kind: Kind::NotIp,
            source: [0; 16],
            destination: [0; 16],
            ports: [0; 4],
            address_bytes: 0,
        }
    }
}

/// Reads an Ethernet frame.
#[must_use]
pub fn parse(frame: &[u8]) -> Parsed {
    of_layers(frame, &walk(frame, Rule::NIC), false)
}

/// The EtherType of an IP packet in a frame, and the packet.
pub(crate) fn network(frame: &[u8]) -> Option<(Version, &[u8])> {
    let link = link(frame, Rule::NIC);
    let version = match link.ethertype? {
        ethernet::IPV4 => Version::V4,
        ethernet::IPV6 => Version::V6,
        _ => return None,
    };
    Some((version, frame.get(link.at..).unwrap_or(&[])))
}

/// A NIC's hash input for a packet with known headers; with `whole`, a first fragment of IPv4 counts as the packet.
///
/// Each version has its own way through, with headers of a constant size: the result is then written once and
/// addresses are copied in words, which is what this costs.
#[inline(always)]
pub(crate) fn of_layers(frame: &[u8], layers: &Layers, whole: bool) -> Parsed {
    let Some(ip) = &layers.ip else {
        return Parsed::other();
    };
    let packet = frame.get(ip.at..).unwrap_or(&[]);
    match ip.version {
        Version::V4 => {
            let Some(header) = packet.first_chunk::<{ ipv4::HEADER }>() else {
                return Parsed::other();
            };
            let mut parsed = Parsed {
                kind: Kind::Ipv4,
                source: padded(field(&header[ipv4::SOURCE])),
                destination: padded(field(&header[ipv4::DESTINATION])),
                address_bytes: 4,
                ..Parsed::other()
            };
            if ip.fragment == Fragment::Later || ip.fragment == Fragment::First && !whole {
                parsed.kind = Kind::Ipv4Fragment;
                return parsed;
            }
            let kinds = [Kind::Ipv4Tcp, Kind::Ipv4Udp, Kind::Ipv4Sctp];
            transport(parsed, frame, ip.upper, kinds)
        }
        Version::V6 => {
            let Some(header) = packet.first_chunk::<{ ipv6::HEADER }>() else {
                return Parsed::other();
            };
            let mut parsed = Parsed {
                kind: Kind::Ipv6,
                source: field(&header[ipv6::SOURCE]),
                destination: field(&header[ipv6::DESTINATION]),
                address_bytes: 16,
                ..Parsed::other()
            };
            if ip.fragment != Fragment::Whole {
                parsed.kind = Kind::Ipv6Fragment;
                return parsed;
            }
            let kinds = [Kind::Ipv6Tcp, Kind::Ipv6Udp, Kind::Ipv6Sctp];
            transport(parsed, frame, ip.upper, kinds)
        }
    }
}

/// Ports count as soon as they are there: a NIC does not look whether the rest of the header is.
#[inline(always)]
fn transport(mut parsed: Parsed, frame: &[u8], upper: Option<Upper>, kinds: [Kind; 3]) -> Parsed {
    let Some(upper) = upper else {
        return parsed;
    };
    let kind = match upper.protocol {
        protocol::TCP => kinds[0],
        protocol::UDP => kinds[1],
        protocol::SCTP => kinds[2],
        _ => return parsed,
    };
    if let Some(ports) = frame.get(upper.at..).and_then(|r| r.first_chunk::<4>()) {
        parsed.kind = kind;
        parsed.ports = *ports;
    }
    parsed
}

/// A field's bytes; the slice is as long as the field.
#[inline(always)]
fn field<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

/// An address of IPv4 in the room of one of IPv6. Written out, as copying into zeros goes through memory: 3 % of a hash.
#[inline(always)]
fn padded([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    const MACS: ([u8; 6], [u8; 6]) = ([2; 6], [4; 6]);

    fn tcp() -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(1000, 80, 1, 1024);
        builder.write(&mut frame, b"data").unwrap();
        frame
    }

    #[test]
    fn tcp_over_ipv4_has_four_fields() {
        let parsed = parse(&tcp());
        assert_eq!(parsed.kind, Kind::Ipv4Tcp);
        assert_eq!(parsed.field(Field::SourceAddress), [10, 0, 0, 1]);
        assert_eq!(parsed.field(Field::DestinationAddress), [10, 0, 0, 2]);
        assert_eq!(parsed.field(Field::SourcePort), 1000_u16.to_be_bytes());
        assert_eq!(parsed.field(Field::DestinationPort), 80_u16.to_be_bytes());
    }

    #[test]
    fn tags_are_stepped_over() {
        let frame = tcp();
        let mut tagged = frame[..12].to_vec();
        tagged.extend_from_slice(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9]);
        tagged.extend_from_slice(&frame[12..]);
        assert_eq!(parse(&tagged), parse(&frame));
    }

    #[test]
    fn fragments_lose_their_ports_the_first_one_too() {
        for bits in [0x2000_u16, 0x2001, 0x0001] {
            let mut frame = tcp();
            frame[20..22].copy_from_slice(&bits.to_be_bytes());
            let parsed = parse(&frame);
            assert_eq!(parsed.kind, Kind::Ipv4Fragment, "{bits:#x}");
            assert!(parsed.field(Field::SourcePort).is_empty());
        }
        let mut whole = tcp();
        whole[20] = 0x40; // do not fragment
        assert_eq!(parse(&whole).kind, Kind::Ipv4Tcp);
    }

    #[test]
    fn ipv6_extension_headers_are_walked() {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .ipv6([1; 16], [2; 16], 64)
            .udp(5, 6);
        builder.write(&mut frame, b"").unwrap();
        assert_eq!(parse(&frame).kind, Kind::Ipv6Udp);
        let with = |kind: u8, header: [u8; 8]| {
            let mut longer = frame[..54].to_vec();
            longer[20] = kind;
            longer.extend_from_slice(&header);
            longer.extend_from_slice(&frame[54..]);
            parse(&longer)
        };
        let options = with(60, [17, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(options, parse(&frame));
        assert_eq!(with(44, [17, 0, 0, 1, 0, 0, 0, 9]).kind, Kind::Ipv6Fragment);
        assert_eq!(with(44, [17, 0, 0, 0, 0, 0, 0, 9]).kind, Kind::Ipv6Udp);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(mut frame in proptest::collection::vec(0_u8.., 0..120), six: bool) {
            if let Some(kind) = frame.get_mut(12..15) {
                kind.copy_from_slice(if six { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] });
            }
            let parsed = parse(&frame);
            let bytes: usize = [
                Field::SourceAddress,
                Field::DestinationAddress,
                Field::SourcePort,
                Field::DestinationPort,
            ]
            .iter()
            .map(|f| parsed.field(*f).len())
            .sum();
            proptest::prop_assert!([0, 8, 12, 32, 36].contains(&bytes));
        }

        #[test]
        fn a_cut_packet_keeps_what_is_left(length in 0_usize..60) {
            let frame = tcp();
            let kind = parse(frame.get(..length).unwrap_or(&frame)).kind;
            let expected = match length {
                0..34 => Kind::NotIp,
                34..38 => Kind::Ipv4,
                _ => Kind::Ipv4Tcp,
            };
            proptest::prop_assert_eq!(kind, expected);
        }
    }
}
