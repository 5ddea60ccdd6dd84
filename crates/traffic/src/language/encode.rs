//! From layers to bytes: lengths, protocol numbers and checksums.

use millrace_wire::checksum::{Sum, nonzero};
use millrace_wire::protocol::{checksum_at, covers_addresses};
use millrace_wire::{arp, ethernet, ipv4, protocol as number};

use super::layer::{Ends, Kind, Layer};

/// What a layer needs to know of those around it.
#[derive(Clone, Copy)]
pub(super) struct Around {
    source_mac: [u8; 6],
    destination_mac: [u8; 6],
    /// The addresses of the innermost IP header outside, for the pseudo header.
    addresses: Ends,
}

impl Around {
    pub(super) const NOTHING: Self = Self {
        source_mac: DEFAULT_SOURCE,
        destination_mac: DEFAULT_DESTINATION,
        addresses: Ends::None,
    };

    /// What the layers inside this one need to know.
    pub(super) fn inside(mut self, layer: &Layer) -> Self {
        match layer.ends {
            Ends::Mac(source, destination) => {
                self.source_mac = source;
                self.destination_mac = destination;
            }
            Ends::V4(..) | Ends::V6(..) => self.addresses = layer.ends,
            _ => {}
        }
        self
    }

    fn pseudo(&self, protocol: u8, length: usize) -> Sum {
        match self.addresses {
            Ends::V4(source, destination) => Sum::default().pseudo(
                &source.octets(),
                &destination.octets(),
                protocol,
                length as u32,
            ),
            Ends::V6(source, destination) => Sum::default().pseudo(
                &source.octets(),
                &destination.octets(),
                protocol,
                length as u32,
            ),
            _ => Sum::default(),
        }
    }
}

pub(super) const DEFAULT_SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(super) const DEFAULT_DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// The protocol of what has none: for experiments (RFC 3692).
const EXPERIMENTAL_PROTOCOL: u64 = 253;
/// Flag of VXLAN: the network's number is valid (RFC 7348).
const VXLAN_HAS_NUMBER: u64 = 8;
/// What a tunnel carries that carries Ethernet frames.
pub(super) const ETHERNET_INSIDE: u16 = 0x6558;
/// A stack of MPLS labels.
pub(super) const MPLS: u16 = 0x8847;
/// Nothing follows.
const NO_NEXT_HEADER: u64 = number::NONE as u64;

/// The bytes of layers, outermost first; the position of a layer that is too long for its length
/// field otherwise.
///
/// Recursion is as deep as there are layers, which [`super::read`] and [`super::decode`] bound.
pub(super) fn encode(layers: &[Layer], around: Around) -> Result<Vec<u8>, usize> {
    let Some((layer, inside)) = layers.split_first() else {
        return Ok(Vec::new());
    };
    let content = encode(inside, around.inside(layer)).map_err(|position| position + 1)?;
    let mut bytes = header(layer, inside.first(), content.len(), around).ok_or(0_usize)?;
    let header_length = bytes.len();
    bytes.extend_from_slice(&content);
    seal(layer, &mut bytes, header_length, around);
    Ok(bytes)
}

fn be16(number: u64) -> [u8; 2] {
    (number as u16).to_be_bytes()
}

fn be32(number: u64) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

/// A layer's header, its checksum still zero; none if it is longer than it can say.
fn header(layer: &Layer, next: Option<&Layer>, content: usize, around: Around) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(64);
    let b = &mut bytes;
    match (layer.kind, layer.ends) {
        (Kind::Eth, ends) => {
            let (source, destination) = match ends {
                Ends::Mac(source, destination) => (source, destination),
                _ => (DEFAULT_SOURCE, DEFAULT_DESTINATION),
            };
            b.extend(destination);
            b.extend(source);
            b.extend(be16(layer.or("type", ethernet_type(next))));
        }
        (Kind::Vlan, _) => {
            b.extend(be16(layer.or("pcp", 0) << 13 | layer.or("ID", 0)));
            b.extend(be16(layer.or("type", ethernet_type(next))));
        }
        (Kind::Ip, Ends::V4(source, destination)) => {
            let options = layer.bytes.len().next_multiple_of(4);
            let length = layer.get("len").or_else(|| fits(20 + options + content))?;
            b.push((layer.or("version", 4) << 4 | layer.or("ihl", 5 + options as u64 / 4)) as u8);
            b.push(layer.or("tos", 0) as u8);
            b.extend(be16(length));
            b.extend(be16(layer.or("id", 0)));
            let flags = layer.or("df", 0) << 14 | layer.or("more", 0) << 13;
            b.extend(be16(flags | (layer.or("frag", 0) / 8)));
            b.push(layer.or("ttl", 64) as u8);
            b.push(layer.or("proto", protocol(next, EXPERIMENTAL_PROTOCOL)) as u8);
            b.extend([0, 0]);
            b.extend(source.octets());
            b.extend(destination.octets());
            b.extend(&layer.bytes);
            b.resize(20 + options, 0);
        }
        (Kind::Ip6, Ends::V6(source, destination)) => {
            let length = layer.get("len").or_else(|| fits(content))?;
            let first = layer.or("version", 6) << 28 | layer.or("class", 0) << 20;
            b.extend(be32(first | layer.or("label", 0)));
            b.extend(be16(length));
            b.push(layer.or("next", protocol(next, NO_NEXT_HEADER)) as u8);
            b.push(layer.or("hop", 64) as u8);
            b.extend(source.octets());
            b.extend(destination.octets());
        }
        (Kind::HopOpts | Kind::DstOpts | Kind::Routing, _) => {
            let length = (2 + layer.bytes.len()).next_multiple_of(8);
            b.push(layer.or("next", protocol(next, NO_NEXT_HEADER)) as u8);
            b.push(u8::try_from(length / 8 - 1).ok()?);
            b.extend(&layer.bytes);
            b.resize(length, 0);
        }
        (Kind::Frag6, _) => {
            b.extend([layer.or("next", protocol(next, NO_NEXT_HEADER)) as u8, 0]);
            // The offset in units of eight stands three bits up: in bytes it is in its place.
            b.extend(be16(layer.or("offset", 0) | layer.or("more", 0)));
            b.extend(be32(layer.or("id", 0)));
        }
        (Kind::Tcp, Ends::Ports(source, destination)) => {
            let options = layer.bytes.len().next_multiple_of(4);
            b.extend(source.to_be_bytes());
            b.extend(destination.to_be_bytes());
            b.extend(be32(layer.or("seq", 0)));
            b.extend(be32(layer.or("ackno", 0)));
            b.push((layer.or("off", 5 + options as u64 / 4) << 4) as u8);
            let flags = FLAGS.iter().enumerate();
            b.push(
                flags
                    .map(|(bit, word)| (layer.or(word, 0) as u8) << bit)
                    .sum(),
            );
            b.extend(be16(layer.or("win", 65535)));
            b.extend([0, 0]);
            b.extend(be16(layer.or("urgent", 0)));
            b.extend(&layer.bytes);
            b.resize(20 + options, 0);
        }
        (Kind::Udp, Ends::Ports(source, destination)) => {
            let length = layer.get("len").or_else(|| fits(8 + content))?;
            b.extend(source.to_be_bytes());
            b.extend(destination.to_be_bytes());
            b.extend(be16(length));
            b.extend([0, 0]);
        }
        (Kind::Icmp | Kind::Icmp6, _) => {
            b.extend([layer.or("type", 0) as u8, layer.or("code", 0) as u8, 0, 0]);
            b.extend(be32(layer.or("rest", 0)));
            b.extend(&layer.bytes);
        }
        (Kind::Arp, ends) => {
            b.extend(arp::BEGINNING);
            match ends {
                Ends::WhoHas(target, sender) => {
                    b.extend(arp::REQUEST.to_be_bytes());
                    b.extend(around.source_mac);
                    b.extend(sender.octets());
                    b.extend([0; 6]);
                    b.extend(target.octets());
                }
                Ends::IsAt(sender, mac) => {
                    b.extend(arp::REPLY.to_be_bytes());
                    b.extend(mac);
                    b.extend(sender.octets());
                    b.extend(around.destination_mac);
                    b.extend([0; 4]);
                }
                _ => {}
            }
        }
        (Kind::Sctp, Ends::Ports(source, destination)) => {
            b.extend(source.to_be_bytes());
            b.extend(destination.to_be_bytes());
            b.extend(be32(layer.or("tag", 0)));
            b.extend([0; 4]);
        }
        // RFC 2784, and RFC 2890 for key and sequence number.
        (Kind::Gre, _) => {
            let (key, sequence) = (layer.get("key"), layer.get("seq"));
            let bits = layer.or("sum", 0) << 15
                | u64::from(key.is_some()) << 13
                | u64::from(sequence.is_some()) << 12;
            b.extend(be16(bits | layer.or("version", 0)));
            b.extend(be16(layer.or("type", ethernet_type(next))));
            if layer.get("sum").is_some() {
                b.extend([0; 4]);
            }
            for number in [key, sequence].into_iter().flatten() {
                b.extend(be32(number));
            }
        }
        (Kind::Mpls, _) => {
            let bottom = u64::from(next.is_none_or(|next| next.kind != Kind::Mpls));
            let label = layer.or("LABEL", 0) << 12 | layer.or("tc", 0) << 9;
            b.extend(be32(
                label | layer.or("bottom", bottom) << 8 | layer.or("ttl", 64),
            ));
        }
        (Kind::Vxlan, _) => {
            b.extend(be32(layer.or("flags", VXLAN_HAS_NUMBER) << 24));
            b.extend(be32(layer.or("VNI", 0) << 8));
        }
        (Kind::Geneve, _) => {
            let options = layer.bytes.len().next_multiple_of(4);
            b.push((layer.or("version", 0) << 6) as u8 | u8::try_from(options / 4).ok()?);
            b.push((layer.or("oam", 0) << 7 | layer.or("critical", 0) << 6) as u8);
            b.extend(be16(layer.or("type", ethernet_type(next))));
            b.extend(be32(layer.or("VNI", 0) << 8));
            b.extend(&layer.bytes);
            b.resize(8 + options, 0);
        }
        (Kind::Payload | Kind::Raw, _) => b.extend(&layer.bytes),
        // Reading and decoding give these kinds their ends.
        (Kind::Ip | Kind::Ip6 | Kind::Tcp | Kind::Udp | Kind::Sctp, _) => {}
    }
    Some(bytes)
}

/// TCP's flags from the lowest bit.
pub(super) const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

fn fits(length: usize) -> Option<u64> {
    u16::try_from(length).ok().map(u64::from)
}

/// Puts a layer's checksum in its place, given or computed over header and content.
fn seal(layer: &Layer, bytes: &mut [u8], header: usize, around: Around) {
    let length = bytes.len();
    if layer.kind == Kind::Sctp {
        // The sum's lowest byte stands first (RFC 9260, appendix A).
        let sum = layer.get("checksum");
        let sum = sum.map_or_else(|| crc32c(bytes).to_le_bytes(), be32);
        if let Some(place) = bytes.get_mut(8..12) {
            place.copy_from_slice(&sum);
        }
        return;
    }
    let (at, sum) = match number_of(layer.kind) {
        _ if layer.kind == Kind::Gre => {
            if layer.get("sum").is_none() {
                return;
            }
            (GRE_CHECKSUM, Sum::default().bytes(bytes))
        }
        _ if layer.kind == Kind::Ip => {
            let header = bytes.get(..header).unwrap_or(&[]);
            (ipv4::CHECKSUM, Sum::default().bytes(header))
        }
        Some(protocol) => {
            let Some(at) = checksum_at(protocol) else {
                return;
            };
            let sum = if covers_addresses(protocol) {
                around.pseudo(protocol, length)
            } else {
                Sum::default()
            };
            (at, sum.bytes(bytes))
        }
        None => return,
    };
    let computed = match layer.kind {
        Kind::Udp => nonzero(sum.checksum()),
        _ => sum.checksum(),
    };
    millrace_wire::put(bytes, at, layer.or("checksum", u64::from(computed)) as u16);
}

/// Where the checksum of GRE stands, if there is one.
pub(super) const GRE_CHECKSUM: usize = 4;

/// CRC-32C (polynomial 0x1edc6f41, bits reflected).
fn crc32c(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    };
    !bytes.iter().fold(!0, byte)
}

fn ethernet_type(next: Option<&Layer>) -> u64 {
    let kind = match next {
        Some(layer) => match layer.kind {
            Kind::Vlan => return layer.or("tpid", u64::from(ethernet::VLAN)),
            Kind::Ip => ethernet::IPV4,
            Kind::Ip6 => ethernet::IPV6,
            Kind::Arp => ethernet::ARP,
            Kind::Eth => ETHERNET_INSIDE,
            Kind::Mpls => MPLS,
            _ => ethernet::EXPERIMENTAL,
        },
        None => ethernet::EXPERIMENTAL,
    };
    u64::from(kind)
}

/// The number of a layer over IP.
pub(super) fn number_of(kind: Kind) -> Option<u8> {
    NUMBERS
        .iter()
        .find(|(_, of)| *of == kind)
        .map(|(number, _)| *number)
}

/// Layers over IP and their numbers. The last four are of IPv6 only.
pub(super) const NUMBERS: [(u8, Kind); 13] = [
    (number::ICMP, Kind::Icmp),
    (number::IPV4, Kind::Ip),
    (number::TCP, Kind::Tcp),
    (number::UDP, Kind::Udp),
    (number::IPV6, Kind::Ip6),
    (number::ICMPV6, Kind::Icmp6),
    (47, Kind::Gre),
    (132, Kind::Sctp),
    (137, Kind::Mpls),
    (number::HOP_BY_HOP, Kind::HopOpts),
    (number::ROUTING, Kind::Routing),
    (number::FRAGMENT, Kind::Frag6),
    (number::DESTINATION, Kind::DstOpts),
];

fn protocol(next: Option<&Layer>, nothing: u64) -> u64 {
    match next {
        None => nothing,
        Some(layer) => number_of(layer.kind).map_or(EXPERIMENTAL_PROTOCOL, u64::from),
    }
}
