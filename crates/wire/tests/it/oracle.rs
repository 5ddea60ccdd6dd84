//! The walk against etherparse, on generated frames and on the bundled captures.

use etherparse::{LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use millrace_wire::{Fragment, Layers, Rule, Stop, Version, checksum, ipv4, tcp, udp, walk};
use proptest::prelude::*;

use super::frames::{captured, error_about, extended, tagged, tcp4, udp4};

/// What both readers say of a frame, where both accept it.
#[derive(PartialEq, Eq, Debug)]
struct Read {
    tags: usize,
    source: Vec<u8>,
    destination: Vec<u8>,
    protocol: u8,
    /// a first fragment counts
    fragment: bool,
    /// offset of the transport header
    at: usize,
    ports: Option<(u16, u16)>,
}

fn by_walk(frame: &[u8], layers: &Layers) -> Option<Read> {
    let ip = layers.ip?;
    let upper = ip.upper?;
    let bytes = ip.upper_bytes(frame);
    let ports = match (upper.protocol, layers.stop) {
        (6, Stop::Transport) => tcp::Header::new_checked(bytes)
            .ok()
            .map(|h| (h.source(), h.destination())),
        (17, Stop::Transport) => udp::Header::new_checked(bytes)
            .ok()
            .map(|h| (h.source(), h.destination())),
        _ => None,
    };
    Some(Read {
        tags: layers.link.tags,
        source: ip.source(frame).to_vec(),
        destination: ip.destination(frame).to_vec(),
        protocol: upper.protocol,
        fragment: ip.fragment != Fragment::Whole,
        at: upper.at,
        // A first fragment has ports for the walk, while etherparse parses no part of a packet.
        ports: ports.filter(|_| ip.fragment == Fragment::Whole),
    })
}

fn by_etherparse(frame: &[u8]) -> Option<Read> {
    let sliced = SlicedPacket::from_ethernet(frame).ok()?;
    let tags = sliced.link_exts.iter();
    let tags = tags.filter(|e| matches!(e, LinkExtSlice::Vlan(_))).count();
    let (source, destination, payload) = match sliced.net.as_ref()? {
        NetSlice::Ipv4(ip) => (
            ip.header().source().to_vec(),
            ip.header().destination().to_vec(),
            ip.payload().clone(),
        ),
        NetSlice::Ipv6(ip) => (
            ip.header().source().to_vec(),
            ip.header().destination().to_vec(),
            ip.payload().clone(),
        ),
        NetSlice::Arp(_) => return None,
    };
    let ports = match &sliced.transport {
        Some(TransportSlice::Tcp(h)) => Some((h.source_port(), h.destination_port())),
        Some(TransportSlice::Udp(h)) => Some((h.source_port(), h.destination_port())),
        _ => None,
    };
    Some(Read {
        tags,
        source,
        destination,
        protocol: payload.ip_number.0,
        fragment: payload.fragmented,
        at: payload.payload.as_ptr().addr() - frame.as_ptr().addr(),
        ports,
    })
}

#[test]
fn captures_are_read_as_etherparse_reads_them() {
    let mut both = 0;
    for frame in captured() {
        let layers = walk(&frame, Rule::PROGRAM);
        if let Some(other) = by_etherparse(&frame) {
            assert_eq!(by_walk(&frame, &layers), Some(other), "{frame:02x?}");
            both += 1;
        }
    }
    assert!(both > 100, "{both} frames that are IP");
}

#[test]
fn what_an_error_carries_is_read_as_etherparse_reads_it_alone() {
    for about in [udp4(), tcp4(), extended(&[]), extended(&[0, 60])] {
        let error = error_about(&about);
        let layers = walk(&error, Rule::PROGRAM);
        assert_eq!(layers.stop, Stop::Error);
        let inner = layers.inner(&error, Rule::PROGRAM).unwrap();
        let moved = error.len() - about.len();
        let mut expected = by_etherparse(&about).unwrap();
        expected.at += moved;
        assert_eq!(
            by_walk(&error, &inner).map(|r| Read { tags: 0, ..r }),
            Some(expected)
        );
    }
}

prop_compose! {
    /// A frame that is right all through: tags, a version, options or extension headers, a transport, a payload.
    fn right()(
        tags in prop::collection::vec(prop::sample::select(vec![0x8100_u16, 0x88a8]), 0..3),
        six: bool, tcp: bool, options in 0_usize..=10, place in prop::sample::select(vec![0_u16, 0x4000, 0x2000, 0x2003, 7]),
        // Hop-by-hop options come first or not at all: etherparse takes them for nothing else.
        hop: bool, extensions in prop::collection::vec(prop::sample::select(vec![43_u8, 44, 51, 60]), 0..5),
        ports: [u16; 2], payload in prop::collection::vec(any::<u8>(), 0..40), trailer in 0_usize..6,
    ) -> Vec<u8> {
        let mut upper = Vec::new();
        upper.extend(ports[0].to_be_bytes());
        upper.extend(ports[1].to_be_bytes());
        if tcp {
            upper.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        } else {
            upper.extend((8 + payload.len() as u16).to_be_bytes());
            upper.extend([0, 0]);
        }
        upper.extend(&payload);
        let protocol = if tcp { 6 } else { 17 };
        let mut frame = if six {
            let mut numbers = vec![0; usize::from(hop)];
            let mut seen = Vec::new();
            // Each once: etherparse keeps one of each.
            for number in extensions {
                if !seen.contains(&number) {
                    seen.push(number);
                }
            }
            numbers.extend(seen);
            let mut frame = extended(&numbers);
            let chain = frame.len() - 16;
            frame.truncate(chain);
            // The last header says what follows.
            let mut at = 54;
            let mut last = 20;
            for number in &numbers {
                last = at;
                at += if *number == 51 { 16 } else { 8 };
            }
            frame[last] = protocol;
            frame.extend(&upper);
            let length = (frame.len() - 54) as u16;
            frame[18..20].copy_from_slice(&length.to_be_bytes());
            frame
        } else {
            let mut frame = vec![2; 12];
            frame.extend([8, 0]);
            let header = 20 + 4 * options;
            frame.extend([0x45 + options as u8, 0]);
            frame.extend(((header + upper.len()) as u16).to_be_bytes());
            frame.extend([0, 0]);
            frame.extend(place.to_be_bytes());
            frame.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            frame.resize(14 + header, 1);
            frame.extend(&upper);
            let mut view = ipv4::Header::new_checked(&mut frame[14..]).unwrap();
            view.fill_checksum();
            frame
        };
        frame = tagged(&frame, &tags);
        frame.resize(frame.len() + trailer, 0);
        frame
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn right_frames_are_read_as_etherparse_reads_them(frame in right()) {
        let other = by_etherparse(&frame);
        prop_assert!(other.is_some(), "{:02x?}", frame);
        for rule in super::hostile::RULES {
            let layers = walk(&frame, rule);
            prop_assert_eq!(&by_walk(&frame, &layers), &other, "{:?} {:02x?}", layers, frame);
            let stops: &[Stop] = match layers.ip.map(|ip| ip.fragment) {
                Some(Fragment::Later) => &[Stop::Fragment],
                _ => &[Stop::Transport],
            };
            prop_assert!(stops.contains(&layers.stop), "{:?}", layers);
        }
    }

    /// Cut anywhere, nothing is accepted that etherparse refuses as too short.
    #[test]
    fn what_is_cut_short_is_not_accepted(frame in right(), cut in 0_usize..200) {
        let cut = &frame[..cut.min(frame.len())];
        let layers = walk(cut, Rule::PROGRAM);
        if layers.stop == Stop::Transport {
            prop_assert_eq!(by_walk(cut, &layers), by_etherparse(cut));
        }
    }

    /// The checksum of IPv4 and of the transport over the pseudo header.
    #[test]
    fn checksums_are_those_of_etherparse(source: [u8; 4], destination: [u8; 4], ports: [u16; 2], payload in prop::collection::vec(any::<u8>(), 0..50)) {
        let header = etherparse::Ipv4Header::new((8 + payload.len()) as u16, 64, etherparse::IpNumber::UDP, source, destination).unwrap();
        let mut bytes = Vec::new();
        header.write(&mut bytes).unwrap();
        let view = ipv4::Header::new_checked(&bytes).unwrap();
        prop_assert!(view.sum().holds());
        let mut again = bytes.clone();
        again[10..12].fill(0xab);
        ipv4::Header::new_checked(&mut again).unwrap().fill_checksum();
        prop_assert_eq!(&again, &bytes);
        let udp = etherparse::UdpHeader::with_ipv4_checksum(ports[0], ports[1], &header, &payload).unwrap();
        let sum = checksum::Sum::default().pseudo(&source, &destination, 17, (8 + payload.len()) as u32)
            .word(ports[0]).word(ports[1]).word((8 + payload.len()) as u16).bytes(&payload);
        prop_assert_eq!(checksum::nonzero(sum.checksum()), udp.checksum);
    }

    /// RFC 1624: the update gives the checksum of the changed message, for every message but that of zeros.
    #[test]
    fn an_update_is_the_checksum_of_what_changed(mut words in prop::collection::vec(any::<u16>(), 1..20), at: prop::sample::Index, to: u16) {
        let sum = |words: &[u16]| words.iter().fold(checksum::Sum::default(), |s, w| s.word(*w)).checksum();
        let at = at.index(words.len());
        words.push(1);
        let (before, from) = (sum(&words), words[at]);
        words[at] = to;
        prop_assert_eq!(checksum::replace(before, from, to), sum(&words));
        prop_assert_eq!(checksum::replace_udp(0, from, to), 0);
        prop_assert!(checksum::replace_udp(before.max(1), from, to) != 0);
    }
}

/// The version is that of the EtherType: etherparse says so, too.
#[test]
fn a_version_that_is_not_the_types_is_malformed() {
    let mut frame = udp4();
    frame[14] = 0x65;
    let layers = walk(&frame, Rule::CAPTURE);
    assert_eq!((layers.ip, layers.stop), (None, Stop::Malformed));
    assert!(SlicedPacket::from_ethernet(&frame).is_err());
    assert_eq!(
        walk(&extended(&[]), Rule::PROGRAM).ip.unwrap().version,
        Version::V6
    );
}
