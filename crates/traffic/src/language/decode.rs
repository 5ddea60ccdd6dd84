//! From bytes to layers.
//!
//! Every layer is proved by encoding it again: what is found in a header stays unsaid where encoding
//! would compute the same, is said where a word can say it, and where no word can, the bytes from that
//! layer on are a payload. So the text of any bytes gives those bytes again.

use millrace_wire::{
    Rule, announced, arp, ethernet, extension, icmpv4, icmpv6, ipv4, ipv6, link, tcp, udp, vlan,
};

use super::encode::{
    Around, DEFAULT_DESTINATION, DEFAULT_SOURCE, ETHERNET_INSIDE, FLAGS, GRE_CHECKSUM, MPLS,
    NUMBERS, encode,
};
use super::layer::{Ends, Kind, Layer, Packet};

/// Layers that are taken apart; what is deeper stays a payload. Each is encoded again with all that is
/// inside it, so this bounds the work to a multiple of the packet's length.
const MAX_DEPTH: usize = 12;

/// What UDP carries to these ports (RFC 7348, RFC 8926, RFC 7510).
const UDP_PORTS: [(u16, Kind); 3] = [
    (4789, Kind::Vxlan),
    (6081, Kind::Geneve),
    (6635, Kind::Mpls),
];

impl Packet {
    /// Takes a frame apart. There are no bytes that this cannot do.
    pub fn decode(frame: &[u8]) -> Self {
        let (body, trailer) = frame.split_at(frame.len() - trailer_length(frame));
        let layers = layer(Kind::Eth, body, Around::NOTHING, 0);
        let (layers, trailer) = match layers {
            Some(layers) => (layers, trailer),
            None => (
                vec![Layer::new(Kind::Raw, Ends::None, frame)],
                [].as_slice(),
            ),
        };
        Self {
            layers,
            trailer: trailer.to_vec(),
            cut: None,
            bytes: frame.to_vec(),
        }
    }
}

/// How many bytes follow the packet that the frame carries, as Ethernet pads short frames.
fn trailer_length(frame: &[u8]) -> usize {
    let link = link(frame, Rule::CAPTURE);
    let end = match link.ethertype {
        Some(ethernet::ARP) => Some(link.at + arp::MESSAGE),
        _ => announced(frame, link),
    };
    // Less than a header is a lie, or segmentation left to the network card.
    end.filter(|end| *end >= link.at + ipv4::HEADER)
        .and_then(|end| frame.len().checked_sub(end))
        .unwrap_or(0)
}

/// The numbers in a header, by their words, but those that stand in the layer otherwise.
fn numbers(kind: Kind, b: &[u8]) -> Option<Vec<(&'static str, u64)>> {
    let mut numbers: Vec<(&'static str, u64)> = Vec::with_capacity(16);
    match kind {
        Kind::Eth => {
            let frame = ethernet::Frame::new_checked(b).ok()?;
            numbers.push(("type", frame.ethertype().into()));
        }
        Kind::Vlan => {
            let tag = vlan::Tag::new_checked(b).ok()?;
            numbers.extend([
                ("ID", tag.id().into()),
                ("pcp", tag.priority().into()),
                ("type", tag.ethertype().into()),
            ]);
        }
        Kind::Ip => {
            let header = ipv4::Header::new_checked(b).ok()?;
            let place = u64::from(header.fragment());
            numbers.extend([
                ("version", header.version().into()),
                ("ihl", header.header_length() as u64 / 4),
                ("tos", header.service().into()),
                ("len", header.total_length().into()),
                ("id", header.id().into()),
                ("df", place >> 14 & 1),
                ("more", place >> 13 & 1),
                ("frag", (place & 0x1fff) * 8),
                ("ttl", header.ttl().into()),
                ("proto", header.protocol().into()),
                ("checksum", header.checksum().into()),
            ]);
        }
        Kind::Ip6 => {
            let header = ipv6::Header::new_checked(b).ok()?;
            numbers.extend([
                ("version", header.version().into()),
                ("class", header.class().into()),
                ("label", header.label().into()),
                ("len", header.payload_length().into()),
                ("next", header.next().into()),
                ("hop", header.hop_limit().into()),
            ]);
        }
        Kind::HopOpts | Kind::DstOpts | Kind::Routing => {
            let header = extension::Header::new_checked(b).ok()?;
            numbers.push(("next", header.next().into()));
        }
        Kind::Frag6 => {
            let header = extension::Fragment::new_checked(b).ok()?;
            let place = header.place();
            numbers.extend([
                ("next", header.next().into()),
                // All but the lowest three bits, in bytes as they stand.
                ("offset", (place & extension::OFFSET).into()),
                ("more", (place & extension::MORE).into()),
                ("id", header.id().into()),
            ]);
        }
        Kind::Tcp => {
            let header = tcp::Header::new_checked(b).ok()?;
            let flags = u64::from(header.flags());
            numbers.extend([
                ("seq", header.sequence().into()),
                ("ackno", header.acknowledgment().into()),
                ("off", header.header_length() as u64 / 4),
            ]);
            numbers.extend(
                FLAGS
                    .iter()
                    .enumerate()
                    .map(|(bit, word)| (*word, flags >> bit & 1)),
            );
            numbers.extend([
                ("win", u64::from(header.window())),
                ("urgent", header.urgent().into()),
                ("checksum", header.checksum().into()),
            ]);
        }
        Kind::Udp => {
            let header = udp::Header::new_checked(b).ok()?;
            numbers.extend([
                ("len", u64::from(header.length())),
                ("checksum", header.checksum().into()),
            ]);
        }
        Kind::Icmp | Kind::Icmp6 => {
            let message = icmpv4::Message::new_checked(b).ok()?;
            numbers.extend([
                ("type", u64::from(message.kind())),
                ("code", message.code().into()),
                ("rest", message.rest().into()),
                ("checksum", message.checksum().into()),
            ]);
        }
        Kind::Sctp => numbers.extend([
            ("tag", u64::from(word32(b, 4)?)),
            ("checksum", word32(b, 8)?.into()),
        ]),
        Kind::Gre => {
            numbers.extend([
                ("version", u64::from(word16(b, 0)? & 7)),
                ("type", word16(b, 2)?.into()),
            ]);
            if word16(b, 0)? >> 15 == 1 {
                numbers.push(("checksum", word16(b, GRE_CHECKSUM)?.into()));
            }
        }
        Kind::Mpls => {
            let entry = u64::from(word32(b, 0)?);
            numbers.extend([
                ("LABEL", entry >> 12),
                ("tc", entry >> 9 & 7),
                ("bottom", entry >> 8 & 1),
                ("ttl", entry & 0xff),
            ]);
        }
        Kind::Vxlan => numbers.extend([
            ("VNI", u64::from(word32(b, 4)? >> 8)),
            ("flags", u64::from(word32(b, 0)? >> 24)),
        ]),
        Kind::Geneve => {
            let first = u64::from(word16(b, 0)?);
            numbers.extend([
                ("VNI", u64::from(word32(b, 4)? >> 8)),
                ("version", first >> 14),
                ("oam", first >> 7 & 1),
                ("critical", first >> 6 & 1),
                ("type", word16(b, 2)?.into()),
            ]);
        }
        Kind::Arp | Kind::Payload | Kind::Raw => {}
    }
    Some(numbers)
}

fn word16(b: &[u8], at: usize) -> Option<u16> {
    let bytes = b.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_be_bytes(bytes))
}

fn word32(b: &[u8], at: usize) -> Option<u32> {
    let bytes = b.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// A layer without its numbers, and the length of its header.
fn outline(kind: Kind, b: &[u8]) -> Option<(Layer, usize)> {
    let plain = |ends, length| Some((Layer::new(kind, ends, &[]), length));
    match kind {
        Kind::Eth => {
            let frame = ethernet::Frame::new_checked(b).ok()?;
            let (source, destination) = (frame.source(), frame.destination());
            let usual = source == DEFAULT_SOURCE && destination == DEFAULT_DESTINATION;
            plain(
                if usual {
                    Ends::None
                } else {
                    Ends::Mac(source, destination)
                },
                ethernet::HEADER,
            )
        }
        Kind::Vlan => plain(Ends::None, vlan::HEADER),
        Kind::Ip => {
            let header = ipv4::Header::new_checked(b).ok()?;
            let ends = Ends::V4(header.source(), header.destination());
            let layer = Layer::new(kind, ends, header.options());
            Some((layer, header.header_length()))
        }
        Kind::Ip6 => {
            let header = ipv6::Header::new_checked(b).ok()?;
            let ends = Ends::V6(header.source(), header.destination());
            plain(ends, ipv6::HEADER)
        }
        Kind::HopOpts | Kind::DstOpts | Kind::Routing => {
            let header = extension::Header::new_checked(b).ok()?;
            let layer = Layer::new(kind, Ends::None, header.body());
            Some((layer, header.header_length()))
        }
        Kind::Frag6 => plain(Ends::None, extension::LEAST),
        Kind::Tcp => {
            let header = tcp::Header::new_checked(b).ok()?;
            let ends = Ends::Ports(header.source(), header.destination());
            let layer = Layer::new(kind, ends, header.options());
            Some((layer, header.header_length()))
        }
        Kind::Udp => {
            let header = udp::Header::new_checked(b).ok()?;
            let ends = Ends::Ports(header.source(), header.destination());
            plain(ends, udp::HEADER)
        }
        Kind::Icmp | Kind::Icmp6 => plain(Ends::None, icmpv4::HEADER),
        Kind::Arp => {
            let message = arp::Message::new_checked(b).ok()?;
            let ends = match message.operation() {
                arp::REQUEST => Ends::WhoHas(message.target(), message.sender()),
                arp::REPLY => Ends::IsAt(message.sender(), message.sender_hardware()),
                _ => return None,
            };
            plain(ends, arp::MESSAGE)
        }
        Kind::Sctp => plain(Ends::Ports(word16(b, 0)?, word16(b, 2)?), 12),
        Kind::Gre => {
            let bits = word16(b, 0)?;
            let mut layer = Layer::new(kind, Ends::None, &[]);
            let mut length = 4;
            if bits >> 15 == 1 {
                layer.numbers.push(("sum", 1));
                length += 4;
            }
            for (word, bit) in [("key", 13), ("seq", 12)] {
                if bits >> bit & 1 == 1 {
                    layer.numbers.push((word, word32(b, length)?.into()));
                    length += 4;
                }
            }
            Some((layer, length))
        }
        Kind::Mpls => plain(Ends::None, 4),
        Kind::Vxlan => plain(Ends::None, 8),
        Kind::Geneve => {
            let length = 8 + usize::from(b.first()? & 0x3f) * 4;
            Some((Layer::new(kind, Ends::None, b.get(8..length)?), length))
        }
        Kind::Payload | Kind::Raw => None,
    }
}

/// What a layer says that it carries: by its numbers, its ports, or, where nothing says it, the first byte of its
/// content.
fn carried(
    kind: Kind,
    ends: Ends,
    numbers: &[(&'static str, u64)],
    content: &[u8],
) -> Option<Kind> {
    let get = |word| {
        numbers
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
    };
    match kind {
        Kind::Eth | Kind::Vlan => match u16::try_from(get("type")?).ok()? {
            kind if ethernet::is_tag(kind) => Some(Kind::Vlan),
            ethernet::IPV4 => Some(Kind::Ip),
            ethernet::IPV6 => Some(Kind::Ip6),
            ethernet::ARP => Some(Kind::Arp),
            MPLS => Some(Kind::Mpls),
            _ => None,
        },
        Kind::Gre | Kind::Geneve => match u16::try_from(get("type")?).ok()? {
            ETHERNET_INSIDE => Some(Kind::Eth),
            ethernet::IPV4 => Some(Kind::Ip),
            ethernet::IPV6 => Some(Kind::Ip6),
            MPLS => Some(Kind::Mpls),
            _ => None,
        },
        Kind::Mpls if get("bottom")? == 0 => Some(Kind::Mpls),
        Kind::Mpls => match content.first()? >> 4 {
            4 => Some(Kind::Ip),
            6 => Some(Kind::Ip6),
            _ => None,
        },
        Kind::Vxlan => Some(Kind::Eth),
        Kind::Udp => {
            let Ends::Ports(_, to) = ends else {
                return None;
            };
            UDP_PORTS.iter().find(|(port, _)| *port == to).map(|p| p.1)
        }
        // A later fragment begins in the middle of something.
        Kind::Ip if get("frag")? > 0 => None,
        Kind::Frag6 if get("offset")? > 0 => None,
        Kind::Ip => protocol(get("proto")?, false),
        Kind::Ip6 | Kind::HopOpts | Kind::DstOpts | Kind::Routing | Kind::Frag6 => {
            protocol(get("next")?, true)
        }
        Kind::Icmp => icmpv4::is_error(get("type")? as u8).then_some(Kind::Ip),
        Kind::Icmp6 => icmpv6::is_error(get("type")? as u8).then_some(Kind::Ip6),
        Kind::Tcp | Kind::Sctp | Kind::Arp | Kind::Payload | Kind::Raw => None,
    }
}

fn protocol(number: u64, v6: bool) -> Option<Kind> {
    let all = NUMBERS
        .iter()
        .find(|(known, _)| u64::from(*known) == number);
    all.map(|(_, kind)| *kind).filter(|kind| {
        v6 || !matches!(
            kind,
            Kind::HopOpts | Kind::Routing | Kind::Frag6 | Kind::DstOpts
        )
    })
}

/// Layers that give exactly `bytes`, the outermost of this kind; none where no words can say it.
fn layer(kind: Kind, bytes: &[u8], around: Around, depth: usize) -> Option<Vec<Layer>> {
    if depth == MAX_DEPTH {
        return None;
    }
    let (outline, length) = outline(kind, bytes)?;
    let content = bytes.get(length..)?;
    let found = numbers(kind, bytes)?;
    let inside = around.inside(&outline);
    let mut layers = vec![outline];
    let ends = layers.first()?.ends;
    if let Some(mut inner) = carried(kind, ends, &found, content)
        .and_then(|kind| layer(kind, content, inside, depth + 1))
    {
        if let Some(tag) = inner.first_mut().filter(|inner| inner.kind == Kind::Vlan) {
            let kind = found
                .iter()
                .find(|(word, value)| *word == "type" && *value != u64::from(ethernet::VLAN));
            tag.numbers.extend(kind.map(|(_, value)| ("tpid", *value)));
        }
        layers.append(&mut inner);
    } else if !content.is_empty() {
        layers.push(Layer::new(Kind::Payload, Ends::None, content));
    }
    // A VLAN's, a network's and a label's number and an ICMP type are always said; all else where it would not be computed.
    // The checksum comes last, for it depends on everything else.
    let always = |word| {
        matches!(
            (kind, word),
            (Kind::Vlan, "ID")
                | (Kind::Mpls, "LABEL")
                | (Kind::Vxlan | Kind::Geneve, "VNI")
                | (Kind::Icmp | Kind::Icmp6, "type")
        )
    };
    for last in [false, true] {
        let computed = encode(&layers, around)
            .ok()
            .and_then(|bytes| numbers(kind, &bytes));
        let outermost = layers.first_mut()?;
        for (at, (word, value)) in found.iter().enumerate() {
            let same = computed
                .as_ref()
                .is_some_and(|c| c.get(at).is_some_and(|c| c.1 == *value));
            if (*word == "checksum") == last && (!same || always(*word)) {
                outermost.numbers.push((*word, *value));
            }
        }
    }
    let again = encode(&layers, around).ok()?;
    (again == bytes).then_some(layers)
}
