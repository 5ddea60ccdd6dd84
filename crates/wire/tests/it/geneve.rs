//! Geneve between machines: what is written is read again, here and by Wireshark, and nothing else is.

use std::process::Command;

use etherparse::PacketBuilder;
use millrace_wire::geneve::{Carries, Forwarded, HEADER, Malformed, PORT, TAG, WHOLE};
use proptest::prelude::*;

use super::frames::tcp4;

const ONE: Forwarded = Forwarded {
    bucket: 511,
    port: 3,
    version: 0x0102_0304_0506_0708,
    hops: 1,
    carries: Carries::Packet,
};

fn datagram(of: Forwarded) -> Vec<u8> {
    [&of.header(0xabcdef)[..], &tcp4()].concat()
}

#[test]
fn what_is_written_is_read_again_and_each_cut_is_refused() {
    let bytes = datagram(ONE);
    assert_eq!(Forwarded::read(&bytes), Ok((ONE, 0xabcdef, &tcp4()[..])));
    let (signed, tag) = Forwarded::signed(&bytes).unwrap();
    assert_eq!((signed.concat().len() + TAG, tag), (bytes.len(), &[0; TAG]));
    assert_eq!(signed[1], &tcp4()[..]);
    for end in 0..WHOLE {
        assert_eq!(Forwarded::signed(&bytes[..end]), None);
        assert!(Forwarded::read(&bytes[..end]).is_err(), "{end}");
    }
}

#[test]
fn other_datagrams_are_refused_with_the_reason() {
    let with = |at: usize, byte: u8| {
        let mut bytes = datagram(ONE);
        bytes[at] = byte;
        Forwarded::read(&bytes).map(|(of, ..)| of)
    };
    // Another version, a control message, IPv4 without Ethernet.
    assert_eq!(with(0, 0x49), Err(Malformed::Other));
    assert_eq!(with(1, 0xc0), Err(Malformed::Other));
    assert_eq!(with(2, 0x08), Err(Malformed::Other));
    // No options; a critical one of somebody else; one that ends behind the options.
    assert_eq!(with(0, 0), Err(Malformed::Options));
    assert_eq!(with(HEADER, 1), Err(Malformed::Options));
    assert_eq!(with(HEADER + 3, 31), Err(Malformed::Options));
    assert_eq!(with(HEADER + 3, 3), Err(Malformed::Options));
    // Sent on by nobody.
    assert_eq!(with(HEADER + 4 + 12, 0), Err(Malformed::Range));
    // A mark, the answer to one, and nothing that is known.
    assert_eq!(with(HEADER + 4 + 13, 1).unwrap().carries, Carries::Mark);
    assert_eq!(with(HEADER + 4 + 13, 2).unwrap().carries, Carries::Through);
    assert_eq!(with(HEADER + 4 + 13, 3), Err(Malformed::Range));
    // Another one that is not critical is passed over.
    let mut bytes = datagram(ONE);
    bytes[0] += 1;
    bytes.splice(HEADER..HEADER, [0x01, 0x02, 0x03, 0x00]);
    assert_eq!(Forwarded::read(&bytes).unwrap().0, ONE);
    assert_eq!(Forwarded::signed(&bytes), None);
    // Twice the same one.
    let mut bytes = datagram(ONE);
    bytes[0] *= 2;
    let option = bytes[HEADER..WHOLE].to_vec();
    bytes.splice(HEADER..HEADER, option);
    assert_eq!(Forwarded::read(&bytes), Err(Malformed::Options));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0..WHOLE, byte: u8) {
        let _ = Forwarded::read(&bytes);
        let mut changed = datagram(ONE);
        changed[at] = byte;
        if let Ok((of, network, frame)) = Forwarded::read(&changed) {
            prop_assert!(of.hops > 0 && network < 1 << 24 && frame.len() <= tcp4().len());
        }
    }
}

#[test]
fn wireshark_reads_the_same() {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(40_000, PORT)
        .write(&mut frame, &datagram(ONE))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.pcap");
    let (length, mut bytes) = (frame.len() as u32, Vec::new());
    for word in [
        0xa1b2_c3d4_u32,
        0x0004_0002,
        0,
        0,
        65535,
        1,
        1,
        0,
        length,
        length,
    ] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(frame);
    std::fs::write(&file, bytes).unwrap();
    let fields = [
        "geneve.vni",
        "geneve.proto_type",
        "geneve.option.class",
        "geneve.option.type",
        "geneve.option.unknown.data",
        "tcp.dstport",
        "_ws.malformed",
    ];
    let mut tshark = Command::new("tshark");
    tshark
        .args(["-T", "fields", "-E", "separator=,", "-r"])
        .arg(&file);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else {
        println!("skipped: tshark is not here");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
    let said: Vec<&str> = text.trim_end_matches('\n').split(',').collect();
    let data = format!("01ff0003010203040506070801000000{:032}", 0);
    assert_eq!(
        said,
        ["0xabcdef", "0x6558", "0xff4d", "0x81", &data, "80", ""],
        "{text}"
    );
}
