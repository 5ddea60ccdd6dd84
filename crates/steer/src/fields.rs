//! From a frame to the fields that a NIC can hash.
//!
//! The parser knows Ethernet with any VLAN tags (802.1Q, 802.1ad), IPv4, and IPv6 with the extension
//! headers that have a next header. A packet whose headers are cut short is of the kind that can still
//! be told: no ports, IP without them; no addresses, not IP.

use serde::Deserialize;

/// What a NIC distinguishes when it chooses the fields to hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// TCP over IPv4, not fragmented
    Ipv4Tcp,
    /// UDP over IPv4, not fragmented
    Ipv4Udp,
    /// SCTP over IPv4, not fragmented
    Ipv4Sctp,
    /// a fragment over IPv4, the first one too: the ones behind it carry no ports
    Ipv4Fragment,
    /// any other IPv4
    Ipv4,
    /// TCP over IPv6, not fragmented
    Ipv6Tcp,
    /// UDP over IPv6, not fragmented
    Ipv6Udp,
    /// SCTP over IPv6, not fragmented
    Ipv6Sctp,
    /// a fragment over IPv6
    Ipv6Fragment,
    /// any other IPv6
    Ipv6,
    /// not IP, or too short for addresses
    NotIp,
    /// named TCP over IPv4, where the NIC reads something else than the program ([`crate::odd`]); no NIC's own kind
    Ipv4OddTcp,
    /// the same of UDP
    Ipv4OddUdp,
    /// the same of ICMP
    Ipv4OddIcmp,
    /// the same of any other protocol
    Ipv4Odd,
    /// named TCP over IPv6, where the NIC reads something else than the program
    Ipv6OddTcp,
    /// the same of UDP
    Ipv6OddUdp,
    /// the same of ICMPv6
    Ipv6OddIcmp,
    /// the same of any other next header
    Ipv6Odd,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 19] = [
        Self::Ipv4Tcp,
        Self::Ipv4Udp,
        Self::Ipv4Sctp,
        Self::Ipv4Fragment,
        Self::Ipv4,
        Self::Ipv6Tcp,
        Self::Ipv6Udp,
        Self::Ipv6Sctp,
        Self::Ipv6Fragment,
        Self::Ipv6,
        Self::NotIp,
        Self::Ipv4OddTcp,
        Self::Ipv4OddUdp,
        Self::Ipv4OddIcmp,
        Self::Ipv4Odd,
        Self::Ipv6OddTcp,
        Self::Ipv6OddUdp,
        Self::Ipv6OddIcmp,
        Self::Ipv6Odd,
    ];

    /// As it is written in data files, e.g. `ipv4-tcp`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipv4Tcp => "ipv4-tcp",
            Self::Ipv4Udp => "ipv4-udp",
            Self::Ipv4Sctp => "ipv4-sctp",
            Self::Ipv4Fragment => "ipv4-fragment",
            Self::Ipv4 => "ipv4",
            Self::Ipv6Tcp => "ipv6-tcp",
            Self::Ipv6Udp => "ipv6-udp",
            Self::Ipv6Sctp => "ipv6-sctp",
            Self::Ipv6Fragment => "ipv6-fragment",
            Self::Ipv6 => "ipv6",
            Self::NotIp => "not-ip",
            Self::Ipv4OddTcp => "ipv4-odd-tcp",
            Self::Ipv4OddUdp => "ipv4-odd-udp",
            Self::Ipv4OddIcmp => "ipv4-odd-icmp",
            Self::Ipv4Odd => "ipv4-odd",
            Self::Ipv6OddTcp => "ipv6-odd-tcp",
            Self::Ipv6OddUdp => "ipv6-odd-udp",
            Self::Ipv6OddIcmp => "ipv6-odd-icmp",
            Self::Ipv6Odd => "ipv6-odd",
        }
    }

    /// Whether only software tells it apart, by what a program reads.
    #[must_use]
    pub fn is_odd(self) -> bool {
        use Kind::{
            Ipv4Odd, Ipv4OddIcmp, Ipv4OddTcp, Ipv4OddUdp, Ipv6Odd, Ipv6OddIcmp, Ipv6OddTcp,
            Ipv6OddUdp,
        };
        matches!(
            self,
            Ipv4OddTcp
                | Ipv4OddUdp
                | Ipv4OddIcmp
                | Ipv4Odd
                | Ipv6OddTcp
                | Ipv6OddUdp
                | Ipv6OddIcmp
                | Ipv6Odd
        )
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

/// A header field that a NIC can hash, in the order in which it enters the hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// source address of IPv4 or IPv6
    SourceAddress,
    /// destination address of IPv4 or IPv6
    DestinationAddress,
    /// source port of TCP, UDP or SCTP
    SourcePort,
    /// destination port of TCP, UDP or SCTP
    DestinationPort,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 4] = [
        Self::SourceAddress,
        Self::DestinationAddress,
        Self::SourcePort,
        Self::DestinationPort,
    ];

    /// As it is written in data files, e.g. `source-address`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SourceAddress => "source-address",
            Self::DestinationAddress => "destination-address",
            Self::SourcePort => "source-port",
            Self::DestinationPort => "destination-port",
        }
    }

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

const ETHERTYPE: usize = 12;
pub(crate) const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the older 0x9100.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// More tags than NICs parse.
const MAX_TAGS: usize = 4;
/// More extension headers than NICs parse.
const MAX_EXTENSIONS: usize = 8;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const SCTP: u8 = 132;

/// Reads an Ethernet frame.
#[must_use]
pub fn parse(frame: &[u8]) -> Parsed {
    match network(frame) {
        Some((IPV4, packet)) => ipv4(packet, FRAGMENT),
        Some((_, packet)) => ipv6(packet),
        None => Parsed::other(),
    }
}

/// The same, but the first fragment of an IPv4 packet, which carries ports, counts as the whole packet.
#[must_use]
pub fn parse_whole(frame: &[u8]) -> Parsed {
    match network(frame) {
        Some((IPV4, packet)) => ipv4(packet, LATER),
        _ => parse(frame),
    }
}

/// The EtherType of an IP packet in a frame, and the packet.
pub(crate) fn network(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut at = ETHERTYPE;
    for _ in 0..=MAX_TAGS {
        let kind = u16_at(frame, at)?;
        at += 2;
        match kind {
            IPV4 | IPV6 => return Some((kind, frame.get(at..).unwrap_or(&[]))),
            tag if VLAN.contains(&tag) => at += 2,
            _ => break,
        }
    }
    None
}

/// More fragments, or an offset above zero.
const FRAGMENT: u16 = 0x3fff;
/// An offset above zero.
pub(crate) const LATER: u16 = 0x1fff;

/// RFC 791; `fragment` are the bits of which any makes it a fragment.
pub(crate) fn ipv4(packet: &[u8], fragment: u16) -> Parsed {
    let Some(header) = packet.first_chunk::<20>() else {
        return Parsed::other();
    };
    let length = usize::from(header[0] & 0xf) * 4;
    if header[0] >> 4 != 4 || length < 20 {
        return Parsed::other();
    }
    let mut parsed = Parsed {
        kind: Kind::Ipv4,
        address_bytes: 4,
        ..Parsed::other()
    };
    copy(&mut parsed.source, &header[12..16]);
    copy(&mut parsed.destination, &header[16..20]);
    if u16::from_be_bytes([header[6], header[7]]) & fragment != 0 {
        parsed.kind = Kind::Ipv4Fragment;
        return parsed;
    }
    let kinds = [Kind::Ipv4Tcp, Kind::Ipv4Udp, Kind::Ipv4Sctp];
    transport(parsed, header[9], packet.get(length..), kinds)
}

/// RFC 8200; extension headers as in its section 4.
pub(crate) fn ipv6(packet: &[u8]) -> Parsed {
    let Some(header) = packet.first_chunk::<40>() else {
        return Parsed::other();
    };
    if header[0] >> 4 != 6 {
        return Parsed::other();
    }
    let mut parsed = Parsed {
        kind: Kind::Ipv6,
        address_bytes: 16,
        ..Parsed::other()
    };
    copy(&mut parsed.source, &header[8..24]);
    copy(&mut parsed.destination, &header[24..40]);
    let (mut next, mut at) = (header[6], 40);
    for _ in 0..MAX_EXTENSIONS {
        let (following, units) = match (packet.get(at), packet.get(at + 1)) {
            (Some(following), Some(units)) => (*following, usize::from(*units)),
            _ => return parsed,
        };
        match next {
            // Hop-by-hop options, routing, destination options, mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => at += 8 * (units + 1),
            // Authentication header, RFC 4302: in units of four bytes, less two.
            51 => at += 4 * (units + 2),
            44 => {
                let piece = u16_at(packet, at + 2).unwrap_or(0);
                // An atomic fragment (RFC 6946) is a whole packet.
                if piece & 0xfff9 != 0 {
                    parsed.kind = Kind::Ipv6Fragment;
                    return parsed;
                }
                at += 8;
            }
            _ => break,
        }
        next = following;
    }
    let kinds = [Kind::Ipv6Tcp, Kind::Ipv6Udp, Kind::Ipv6Sctp];
    transport(parsed, next, packet.get(at..), kinds)
}

fn transport(mut parsed: Parsed, protocol: u8, rest: Option<&[u8]>, kinds: [Kind; 3]) -> Parsed {
    let kind = match protocol {
        TCP => kinds[0],
        UDP => kinds[1],
        SCTP => kinds[2],
        _ => return parsed,
    };
    if let Some(ports) = rest.and_then(|r| r.first_chunk::<4>()) {
        parsed.kind = kind;
        parsed.ports = *ports;
    }
    parsed
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*pair))
}

fn copy(to: &mut [u8; 16], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
