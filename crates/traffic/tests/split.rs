//! The port at which a packet of one capture enters.

use millrace_traffic::prefix::PrefixError;
use millrace_traffic::split::{Side, Split, SplitError};

fn frame(kinds: &[u16], network: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for (depth, kind) in kinds.iter().enumerate() {
        if depth > 0 {
            frame.extend([0, 5]);
        }
        frame.extend(kind.to_be_bytes());
    }
    frame.extend(network);
    frame
}

#[test]
fn the_sender_decides() {
    let split: Split = "lan=10.0.0.0/24, fd00::/8,192.168.1.7".parse().unwrap();
    assert_eq!(split.to_string(), "lan=10.0.0.0/24,fd00::/8,192.168.1.7/32");
    let v4 = |source: [u8; 4]| [[0x45; 12].as_slice(), &source, &[9; 4]].concat();
    let v6 = |first: u8| [[0x60; 8].as_slice(), &[first; 16], &[9; 16]].concat();
    let arp = |sender: [u8; 4]| {
        [
            &[0, 1, 8, 0, 6, 4, 0, 1],
            [2; 6].as_slice(),
            &sender,
            &[0; 10],
        ]
        .concat()
    };
    for (side, packet) in [
        (Side::Named, frame(&[0x0800], &v4([10, 0, 0, 255]))),
        (Side::Other, frame(&[0x0800], &v4([10, 0, 1, 0]))),
        (Side::Named, frame(&[0x0800], &v4([192, 168, 1, 7]))),
        (Side::Other, frame(&[0x0800], &v4([192, 168, 1, 6]))),
        (Side::Named, frame(&[0x8100, 0x0800], &v4([10, 0, 0, 1]))),
        (Side::Named, frame(&[0x88a8, 0x8100, 0x86dd], &v6(0xfd))),
        (Side::Other, frame(&[0x86dd], &v6(0x20))),
        (Side::Named, frame(&[0x0806], &arp([10, 0, 0, 3]))),
        (Side::Other, frame(&[0x0806], &arp([192, 0, 2, 3]))),
        (Side::Other, frame(&[0x88cc], &[10; 40])),
        (Side::Other, frame(&[0x0800], &[0x45; 14])),
        (Side::Other, frame(&[0x8100], &[])),
        (Side::Other, vec![]),
    ] {
        assert_eq!(split.side(&packet), side, "{packet:02x?}");
    }
}

#[test]
fn whole_address_families_and_errors() {
    let all: Split = "x=0.0.0.0/0,::/0".parse().unwrap();
    assert_eq!(all.side(&frame(&[0x0800], &[77; 20])), Side::Named);
    assert_eq!(all.side(&frame(&[0x86dd], &[77; 40])), Side::Named);
    for text in ["", "lan", "=10.0.0.0/8", "lan=", "lan= "] {
        assert!(
            matches!(text.parse::<Split>(), Err(SplitError::Form(_))),
            "{text}"
        );
    }
    assert!(matches!(
        "lan=10.0.0/8".parse::<Split>(),
        Err(SplitError::Prefix(PrefixError::Address(_)))
    ));
    for text in [
        "lan=10.0.0.0/33",
        "lan=10.0.0.0/+8",
        "lan=::/129",
        "lan=10.0.0.0/x",
        "lan=10.0.0.0/-1",
    ] {
        assert!(
            matches!(
                text.parse::<Split>(),
                Err(SplitError::Prefix(PrefixError::Bits { .. }))
            ),
            "{text}"
        );
    }
}
