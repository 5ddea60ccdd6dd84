//! Each option of a rule, by a frame that tells it from the others; and the reasons to stop.

use millrace_wire::{Fragment, Lengths, Rule, Stop, walk};

use super::frames::{error_about, extended, tagged, tcp4, udp4};

fn stop(frame: &[u8], rule: Rule) -> Stop {
    walk(frame, rule).stop
}

#[test]
fn tags() {
    let two = tagged(&udp4(), &[0x88a8, 0x8100]);
    assert_eq!(stop(&two, Rule::PROGRAM), Stop::Transport);
    // A third tag is a type like any other; so is the old one.
    let three = tagged(&udp4(), &[0x8100; 3]);
    assert_eq!(stop(&three, Rule::PROGRAM), Stop::Unknown);
    assert_eq!(walk(&three, Rule::PROGRAM).link.ethertype, Some(0x8100));
    assert_eq!(stop(&three, Rule::NIC), Stop::Transport);
    let old = tagged(&udp4(), &[0x9100]);
    assert_eq!(stop(&old, Rule::PROGRAM), Stop::Unknown);
    assert_eq!(stop(&old, Rule::NIC), Stop::Transport);
    let many = tagged(&udp4(), &[0x8100; 20]);
    assert_eq!(stop(&many, Rule::NIC), Stop::Unknown);
    assert_eq!(stop(&many, Rule::CAPTURE), Stop::Transport);
    assert_eq!(stop(&many[..60], Rule::CAPTURE), Stop::Short);
}

#[test]
fn extension_headers() {
    let eight = extended(&[60; 8]);
    assert_eq!(stop(&eight, Rule::PROGRAM), Stop::Transport);
    let nine = extended(&[60; 9]);
    assert_eq!(stop(&nine, Rule::PROGRAM), Stop::Malformed);
    assert_eq!(stop(&nine, Rule::NIC), Stop::Malformed);
    assert_eq!(stop(&nine, Rule::CAPTURE), Stop::Transport);
    for rare in [135, 139, 140] {
        let frame = extended(&[rare]);
        assert_eq!(stop(&frame, Rule::PROGRAM), Stop::Unknown);
        assert_eq!(stop(&frame, Rule::NIC), Stop::Transport);
    }
}

#[test]
fn lengths() {
    let mut longer = udp4();
    longer[17] += 40;
    let loose = Rule {
        header_sum: false,
        ..Rule::PROGRAM
    };
    assert_eq!(stop(&longer, loose), Stop::Short);
    assert_eq!(walk(&longer, Rule::CAPTURE).ip.unwrap().end, longer.len());
    let mut padded = udp4();
    padded.resize(80, 0);
    assert_eq!(walk(&padded, Rule::PROGRAM).ip.unwrap().end, 50);
    assert_eq!(walk(&padded, Rule::CAPTURE).ip.unwrap().end, 50);
    assert_eq!(walk(&padded, Rule::WRITTEN).ip.unwrap().end, 80);
    assert_eq!(Rule::WRITTEN.lengths, Lengths::Ignored);
    // Less than the header takes.
    for total in [0, 19] {
        padded[17] = total;
        assert_eq!(stop(&padded, loose), Stop::Malformed);
        assert_eq!(walk(&padded, Rule::CAPTURE).ip.unwrap().end, 80);
    }
    let mut jumbo = extended(&[]);
    jumbo[18..20].fill(0);
    assert_eq!(stop(&jumbo, Rule::PROGRAM), Stop::Short);
    assert_eq!(stop(&jumbo, Rule::CAPTURE), Stop::Transport);
}

#[test]
fn header_sums() {
    let mut wrong = udp4();
    wrong[24] ^= 1;
    assert_eq!(stop(&wrong, Rule::PROGRAM), Stop::Malformed);
    assert_eq!(stop(&wrong, Rule::DEVICE), Stop::Transport);
}

#[test]
fn fragments() {
    let piece = |place: u16| {
        let mut frame = udp4();
        frame[20..22].copy_from_slice(&place.to_be_bytes());
        let layers = walk(&frame, Rule::DEVICE);
        (layers.ip.unwrap().fragment, layers.stop)
    };
    assert_eq!(piece(0x4000), (Fragment::Whole, Stop::Transport));
    assert_eq!(piece(0x2000), (Fragment::First, Stop::Transport));
    assert_eq!(piece(0x2001), (Fragment::Later, Stop::Fragment));
    assert_eq!(piece(0x0001), (Fragment::Later, Stop::Fragment));
    for (place, fragment) in [
        (0_u16, Fragment::Whole),
        (6, Fragment::Whole),
        (1, Fragment::First),
        (8, Fragment::Later),
    ] {
        let mut frame = extended(&[44, 60]);
        frame[56..58].copy_from_slice(&place.to_be_bytes());
        let layers = walk(&frame, Rule::PROGRAM);
        let ip = layers.ip.unwrap();
        assert_eq!(ip.fragment, fragment);
        // Behind a later fragment's header is a piece of the packet, whose first header is named.
        let later = fragment == Fragment::Later;
        assert_eq!(ip.upper.unwrap().protocol, if later { 60 } else { 17 });
        assert_eq!(layers.stop == Stop::Fragment, later);
    }
}

#[test]
fn transports() {
    for bytes in 0..20 {
        let mut frame = tcp4();
        frame.truncate(34 + bytes);
        frame[16..18].copy_from_slice(&(20 + bytes as u16).to_be_bytes());
        assert_eq!(stop(&frame, Rule::DEVICE), Stop::Short, "{bytes}");
    }
    let mut offset = tcp4();
    offset[46] = 0x40;
    assert_eq!(stop(&offset, Rule::PROGRAM), Stop::Malformed);
    offset[46] = 0xf0;
    assert_eq!(stop(&offset, Rule::PROGRAM), Stop::Short);
    let mut other = udp4();
    other[23] = 47;
    assert_eq!(stop(&other, Rule::DEVICE), Stop::Unknown);
}

#[test]
fn errors() {
    for about in [udp4(), extended(&[60])] {
        let error = error_about(&about);
        let layers = walk(&error, Rule::PROGRAM);
        let inner = layers.inner(&error, Rule::PROGRAM).unwrap();
        assert_eq!((layers.stop, inner.stop), (Stop::Error, Stop::Transport));
        assert_eq!(inner.inner(&error, Rule::PROGRAM), None);
        // Nobody answers an error with an error.
        let twice = error_about(&error);
        let layers = walk(&twice, Rule::PROGRAM);
        let inner = layers.inner(&twice, Rule::PROGRAM).unwrap();
        assert_eq!(inner.stop, Stop::Malformed);
    }
    assert_eq!(
        walk(&udp4(), Rule::PROGRAM).inner(&udp4(), Rule::PROGRAM),
        None
    );
}
