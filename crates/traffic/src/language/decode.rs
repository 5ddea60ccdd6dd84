//! From bytes to layers.
//!
//! Every layer is proved by encoding it again: what is found in a header stays unsaid where encoding
//! would compute the same, is said where a word can say it, and where no word can, the bytes from that
//! layer on are a payload. So the text of any bytes gives those bytes again.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::encode::{Around, DEFAULT_DESTINATION, DEFAULT_SOURCE, FLAGS, encode};
use super::layer::{Ends, Kind, Layer, Packet};

/// Layers that are taken apart; what is deeper stays a payload. Each is encoded again with all that is
/// inside it, so this bounds the work to a multiple of the packet's length.
const MAX_DEPTH: usize = 12;

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

fn be16(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?).into())
}

fn be32(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?).into())
}

fn mac(bytes: &[u8], at: usize) -> Option<[u8; 6]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn v4(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?))
}

fn v6(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?))
}

/// How many bytes follow the packet that the frame carries, as Ethernet pads short frames.
fn trailer_length(frame: &[u8]) -> usize {
    let length = || {
        let mut at = 12;
        while at < 12 + 4 * MAX_DEPTH && is_tag(be16(frame, at)?) {
            at += 4;
        }
        let packet = frame.get(at + 2..)?;
        let length = match be16(frame, at)? {
            0x0800 => be16(packet, 2)? as usize,
            0x86dd => 40 + be16(packet, 4)? as usize,
            0x0806 => 28,
            _ => return None,
        };
        // Less than a header is a lie, or segmentation left to the network card.
        packet.len().checked_sub(length).filter(|_| length >= 20)
    };
    length().unwrap_or(0)
}

fn is_tag(kind: u64) -> bool {
    matches!(kind, 0x8100 | 0x88a8 | 0x9100)
}

/// The numbers in a header, by their words, but those that stand in the layer otherwise.
fn numbers(kind: Kind, b: &[u8]) -> Option<Vec<(&'static str, u64)>> {
    let byte = |at: usize| b.get(at).map(|byte| u64::from(*byte));
    let mut numbers = Vec::with_capacity(12);
    match kind {
        Kind::Eth => numbers.push(("type", be16(b, 12)?)),
        Kind::Vlan => {
            let tag = be16(b, 0)?;
            numbers.extend([
                ("ID", tag & 0xfff),
                ("pcp", tag >> 13),
                ("type", be16(b, 2)?),
            ]);
        }
        Kind::Ip => {
            let (first, flags) = (byte(0)?, be16(b, 6)?);
            numbers.extend([
                ("version", first >> 4),
                ("ihl", first & 15),
                ("tos", byte(1)?),
                ("len", be16(b, 2)?),
                ("id", be16(b, 4)?),
                ("df", flags >> 14 & 1),
                ("more", flags >> 13 & 1),
                ("frag", (flags & 0x1fff) * 8),
                ("ttl", byte(8)?),
                ("proto", byte(9)?),
                ("checksum", be16(b, 10)?),
            ]);
        }
        Kind::Ip6 => {
            let first = be32(b, 0)?;
            numbers.extend([
                ("version", first >> 28),
                ("class", first >> 20 & 0xff),
                ("label", first & 0xf_ffff),
                ("len", be16(b, 4)?),
                ("next", byte(6)?),
                ("hop", byte(7)?),
            ]);
        }
        Kind::HopOpts | Kind::DstOpts | Kind::Routing => numbers.push(("next", byte(0)?)),
        Kind::Frag6 => {
            let place = be16(b, 2)?;
            numbers.extend([
                ("next", byte(0)?),
                ("offset", place & !7),
                ("more", place & 1),
                ("id", be32(b, 4)?),
            ]);
        }
        Kind::Tcp => {
            let flags = byte(13)?;
            numbers.extend([
                ("seq", be32(b, 4)?),
                ("ackno", be32(b, 8)?),
                ("off", byte(12)? >> 4),
            ]);
            numbers.extend(
                FLAGS
                    .iter()
                    .enumerate()
                    .map(|(bit, word)| (*word, flags >> bit & 1)),
            );
            let last = [
                ("win", be16(b, 14)?),
                ("urgent", be16(b, 18)?),
                ("checksum", be16(b, 16)?),
            ];
            numbers.extend(last);
        }
        Kind::Udp => numbers.extend([("len", be16(b, 4)?), ("checksum", be16(b, 6)?)]),
        Kind::Icmp | Kind::Icmp6 => numbers.extend([
            ("type", byte(0)?),
            ("code", byte(1)?),
            ("rest", be32(b, 4)?),
            ("checksum", be16(b, 2)?),
        ]),
        Kind::Arp | Kind::Payload | Kind::Raw => {}
    }
    Some(numbers)
}

/// A layer without its numbers, and the length of its header.
fn outline(kind: Kind, b: &[u8]) -> Option<(Layer, usize)> {
    let plain = |ends, length| Some((Layer::new(kind, ends, &[]), length));
    match kind {
        Kind::Eth => {
            let (source, destination) = (mac(b, 6)?, mac(b, 0)?);
            let usual = source == DEFAULT_SOURCE && destination == DEFAULT_DESTINATION;
            plain(
                if usual {
                    Ends::None
                } else {
                    Ends::Mac(source, destination)
                },
                14,
            )
        }
        Kind::Vlan => plain(Ends::None, 4),
        Kind::Ip => {
            let length = usize::from(b.first()? & 15) * 4;
            let options = b.get(20..length)?;
            Some((
                Layer::new(kind, Ends::V4(v4(b, 12)?, v4(b, 16)?), options),
                length,
            ))
        }
        Kind::Ip6 => plain(Ends::V6(v6(b, 8)?, v6(b, 24)?), 40),
        Kind::HopOpts | Kind::DstOpts | Kind::Routing => {
            let length = (usize::from(*b.get(1)?) + 1) * 8;
            Some((Layer::new(kind, Ends::None, b.get(2..length)?), length))
        }
        Kind::Frag6 => plain(Ends::None, 8),
        Kind::Tcp => {
            let ports = Ends::Ports(be16(b, 0)? as u16, be16(b, 2)? as u16);
            let length = usize::from(b.get(12)? >> 4) * 4;
            Some((Layer::new(kind, ports, b.get(20..length)?), length))
        }
        Kind::Udp => plain(Ends::Ports(be16(b, 0)? as u16, be16(b, 2)? as u16), 8),
        Kind::Icmp | Kind::Icmp6 => plain(Ends::None, 8),
        Kind::Arp => match be16(b, 6)? {
            1 => plain(Ends::WhoHas(v4(b, 24)?, v4(b, 14)?), 28),
            2 => plain(Ends::IsAt(v4(b, 14)?, mac(b, 8)?), 28),
            _ => None,
        },
        Kind::Payload | Kind::Raw => None,
    }
}

/// What a layer says that it carries.
fn carried(kind: Kind, numbers: &[(&'static str, u64)]) -> Option<Kind> {
    let get = |word| {
        numbers
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
    };
    match kind {
        Kind::Eth | Kind::Vlan => match get("type")? {
            kind if is_tag(kind) => Some(Kind::Vlan),
            0x0800 => Some(Kind::Ip),
            0x86dd => Some(Kind::Ip6),
            0x0806 => Some(Kind::Arp),
            _ => None,
        },
        // A later fragment begins in the middle of something.
        Kind::Ip if get("frag")? > 0 => None,
        Kind::Frag6 if get("offset")? > 0 => None,
        Kind::Ip => protocol(get("proto")?, false),
        Kind::Ip6 | Kind::HopOpts | Kind::DstOpts | Kind::Routing | Kind::Frag6 => {
            protocol(get("next")?, true)
        }
        Kind::Icmp => matches!(get("type")?, 3 | 4 | 5 | 11 | 12).then_some(Kind::Ip),
        Kind::Icmp6 => matches!(get("type")?, 1..=4).then_some(Kind::Ip6),
        Kind::Tcp | Kind::Udp | Kind::Arp | Kind::Payload | Kind::Raw => None,
    }
}

fn protocol(number: u64, v6: bool) -> Option<Kind> {
    match number {
        1 => Some(Kind::Icmp),
        4 => Some(Kind::Ip),
        6 => Some(Kind::Tcp),
        17 => Some(Kind::Udp),
        41 => Some(Kind::Ip6),
        58 => Some(Kind::Icmp6),
        0 if v6 => Some(Kind::HopOpts),
        43 if v6 => Some(Kind::Routing),
        44 if v6 => Some(Kind::Frag6),
        60 if v6 => Some(Kind::DstOpts),
        _ => None,
    }
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
    if let Some(mut inner) =
        carried(kind, &found).and_then(|kind| layer(kind, content, inside, depth + 1))
    {
        if let Some(tag) = inner.first_mut().filter(|inner| inner.kind == Kind::Vlan) {
            let kind = found
                .iter()
                .find(|(word, value)| *word == "type" && *value != 0x8100);
            tag.numbers.extend(kind.map(|(_, value)| ("tpid", *value)));
        }
        layers.append(&mut inner);
    } else if !content.is_empty() {
        layers.push(Layer::new(Kind::Payload, Ends::None, content));
    }
    // A VLAN identifier and an ICMP type are always said; all else where it would not be computed.
    // The checksum comes last, for it depends on everything else.
    let always = |word| {
        matches!(
            (kind, word),
            (Kind::Vlan, "ID") | (Kind::Icmp | Kind::Icmp6, "type")
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
