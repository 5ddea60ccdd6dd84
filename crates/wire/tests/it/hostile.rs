//! No byte sequence makes a walk, a view or a checksum panic, and what a walk says is inside of the frame.

use millrace_wire::{
    Layers, Rule, Stop, announced, arp, checksum, ethernet, extension, icmpv4, icmpv6, ipv4, ipv6,
    tcp, udp, vlan, walk,
};

use super::frames::{Chance, captured, kinds};

pub const RULES: [Rule; 5] = [
    Rule::PROGRAM,
    Rule::DEVICE,
    Rule::NIC,
    Rule::CAPTURE,
    Rule::WRITTEN,
];

fn inside(layers: &Layers, frame: &[u8]) {
    assert_eq!(layers.link.at, 14 + 4 * layers.link.tags);
    assert!(layers.link.ethertype.is_none() || layers.link.at <= frame.len());
    let Some(ip) = layers.ip else {
        assert!(matches!(
            layers.stop,
            Stop::Unknown | Stop::Short | Stop::Malformed
        ));
        return;
    };
    assert!(ip.end <= frame.len() && ip.addresses().end <= frame.len());
    let bytes = ip.addresses().len() / 2;
    assert_eq!(
        (ip.source(frame).len(), ip.destination(frame).len()),
        (bytes, bytes)
    );
    if let Some(upper) = ip.upper {
        assert!(upper.at <= ip.end, "{layers:?}");
        assert_eq!(ip.upper_bytes(frame).len(), ip.end - upper.at);
    }
    if matches!(layers.stop, Stop::Transport | Stop::Error) {
        assert!(ip.upper_bytes(frame).len() >= 8, "{layers:?}");
    }
}

/// Looks at everything that can be looked at.
fn look(frame: &[u8]) {
    for rule in RULES {
        let layers = walk(frame, rule);
        inside(&layers, frame);
        let inner = layers.inner(frame, rule);
        assert_eq!(inner.is_some(), layers.stop == Stop::Error);
        if let Some(inner) = inner {
            inside(&inner, frame);
            assert!(inner.stop != Stop::Error);
        }
        let _ = announced(frame, layers.link);
    }
}

fn views(bytes: &[u8]) {
    let _ =
        ethernet::Frame::new_checked(bytes).map(|h| (h.source(), h.destination(), h.ethertype()));
    let _ = vlan::Tag::new_checked(bytes).map(|h| (h.id(), h.priority(), h.ethertype()));
    if let Ok(h) = arp::Message::new_checked(bytes) {
        let _ = (
            h.is_ipv4(),
            h.operation(),
            h.sender_hardware(),
            h.sender(),
            h.target(),
        );
    }
    if let Ok(h) = ipv4::Header::new_checked(bytes) {
        assert!((20..=60).contains(&h.header_length()) && h.header_length() <= bytes.len());
        let _ = (
            h.version(),
            h.service(),
            h.total_length(),
            h.id(),
            h.fragment(),
            h.ttl(),
        );
        let _ = (
            h.protocol(),
            h.checksum(),
            h.source(),
            h.destination(),
            h.sum(),
        );
        assert_eq!(h.options().len(), h.header_length() - 20);
        let mut own = ipv4::Header::new_checked(bytes.to_vec()).unwrap();
        own.set_total_length(7);
        own.set_id(9);
        own.fill_checksum();
        assert_eq!((own.total_length(), own.id()), (7, 9));
        assert!(own.sum().holds());
    }
    if let Ok(h) = ipv6::Header::new_checked(bytes) {
        let _ = (
            h.version(),
            h.class(),
            h.label(),
            h.payload_length(),
            h.next(),
            h.hop_limit(),
        );
        let _ = (h.source(), h.destination());
    }
    if let Ok(h) = extension::Header::new_checked(bytes) {
        assert_eq!(h.body().len(), h.header_length() - 2);
        let _ = h.next();
    }
    let _ = extension::Fragment::new_checked(bytes).map(|h| (h.next(), h.place(), h.id()));
    if let Ok(h) = tcp::Header::new_checked(bytes) {
        assert!((20..=60).contains(&h.header_length()) && h.header_length() <= bytes.len());
        let _ = (
            h.source(),
            h.destination(),
            h.sequence(),
            h.acknowledgment(),
            h.flags(),
        );
        let _ = (h.window(), h.checksum(), h.urgent(), h.options());
    }
    let _ = udp::Header::new_checked(bytes)
        .map(|h| (h.source(), h.destination(), h.length(), h.checksum()));
    let _ =
        icmpv4::Message::new_checked(bytes).map(|h| (h.kind(), h.code(), h.checksum(), h.rest()));
    let _ = (icmpv4::echo(bytes), icmpv6::echo(bytes));
    let mut own = bytes.to_vec();
    for (start, offset) in [
        (0, 0),
        (1, 6),
        (bytes.len(), 0),
        (usize::MAX, 1),
        (3, usize::MAX),
    ] {
        let _ = checksum::finish(&mut own, start, offset);
    }
    assert_eq!(own.len(), bytes.len());
}

#[test]
fn every_prefix_of_every_frame_can_be_looked_at() {
    for frame in captured().into_iter().take(400).chain(kinds()) {
        for length in 0..=frame.len().min(160) {
            look(&frame[..length]);
        }
    }
}

#[test]
fn every_view_of_every_suffix_can_be_looked_at() {
    for frame in kinds() {
        for from in 0..frame.len() {
            views(&frame[from..]);
            views(&frame[..from]);
        }
    }
}

#[test]
fn damaged_frames_can_be_looked_at() {
    let frames: Vec<Vec<u8>> = captured().into_iter().take(300).chain(kinds()).collect();
    let mut chance = Chance(88_172_645_463_325_252);
    for _ in 0..300_000 {
        let mut frame = frames[chance.below(frames.len())].clone();
        chance.damage(&mut frame);
        look(&frame);
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_can_be_looked_at(bytes in proptest::collection::vec(0_u8.., 0..140), six: bool) {
        look(&bytes);
        views(&bytes);
        let mut frame = bytes;
        if let Some(kind) = frame.get_mut(12..15) {
            kind.copy_from_slice(if six { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] });
        }
        look(&frame);
    }
}
