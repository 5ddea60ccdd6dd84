//! Linked rows over packets that are nearly common ones: straight code leaves at each step, and what it found before must not stay.

use std::path::Path;

use millrace_turns::of_today;

use crate::common::{millrace, output};
use crate::linked::{over, told};

/// A shortest frame of TCP or UDP over IPv4, which leaves the LAN.
fn common(protocol: u8, flow: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 1, 0, 0, 64, protocol, 0, 0]);
    frame.extend([10, 0, 0, flow, 198, 51, 100, 1, 0x9c, flow, 0, 53]);
    match protocol {
        6 => frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0]),
        _ => frame.extend([0, 26, 0, 0]),
    }
    frame.resize(60, 0);
    frame
}

/// The frame with a right checksum of its IPv4 header, where that is.
fn summed(mut frame: Vec<u8>) -> Vec<u8> {
    let at = match frame.get(12..14) {
        Some([0x81 | 0x88, _]) => 18,
        _ => 14,
    };
    let length = frame.get(at).map_or(0, |b| usize::from(b & 15) * 4).max(20);
    if let Some(header) = frame.get_mut(at..at + length) {
        header[10..12].fill(0);
        let words = header
            .chunks(2)
            .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let sum = !(((folded & 0xffff) + (folded >> 16)) as u16);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

/// Each byte of common frames changed, with the checksum as it was and right; each length; a VLAN tag; options. Common ones between them.
fn frames() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for protocol in [17, 6] {
        let usual = |n: usize| summed(common(protocol, 1 + (n % 5) as u8));
        for byte in 0..usual(0).len() {
            let was = usual(byte)[byte];
            // A time to live of 1 among them.
            for becomes in [was ^ 0x01, was ^ 0x04, was ^ 0x80, !was, 0, 1] {
                let mut frame = usual(byte);
                frame[byte] = becomes;
                all.extend([frame.clone(), summed(frame), usual(byte + 1)]);
            }
        }
        for length in 0..60 {
            all.push(usual(length)[..length].to_vec());
            all.push(usual(length + 1));
        }
        for n in 0..8 {
            let mut tagged = usual(n);
            tagged.splice(12..12, [0x81, 0, 0, 7]);
            let mut options = usual(n);
            options[14] += 1;
            options.splice(34..34, [1, 1, 1, 1]);
            all.extend([summed(tagged), summed(options), usual(n)]);
        }
    }
    all
}

/// A capture of them, a microsecond apart.
fn capture(file: &Path) -> usize {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1u32] {
        bytes.extend(word.to_le_bytes());
    }
    let frames = frames();
    for (at, frame) in (0u32..).zip(&frames) {
        let length = frame.len() as u32;
        for word in [1, at, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    std::fs::write(file, bytes).unwrap();
    frames.len()
}

#[test]
fn packets_that_are_nearly_common_come_out_of_a_linked_row_as_of_the_row() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("nearly.pcap");
    let count = capture(&file);
    let rows: [&[&str]; 3] = [
        &["firewall", "nat"],
        &["policer", "nat"],
        &["firewall", "firewall"],
    ];
    for row in of_today("rows of packets that are nearly common", rows, 3) {
        let (one, other) = (dir.path().join("row.pcap"), dir.path().join("linked.pcap"));
        let plain = over((row, "no", &[]), &file, &one).unwrap();
        assert_eq!(plain.0["read"], count);
        // The second time under sanitizers, with each byte that is not read again compared with the packet.
        for more in [&[][..], &["--sanitize"]] {
            let linked = over((row, "yes", more), &file, &other).unwrap();
            assert_eq!(told(&plain.0), told(&linked.0), "{row:?} {more:?}");
            assert!(plain.1 == linked.1, "{row:?} {more:?}: other packets");
        }
    }
}

#[test]
fn the_second_element_reads_nothing_that_the_first_has_read() {
    let mut emit = millrace();
    emit.args(["emit", "firewall+nat", "--target", "c"]);
    let (done, said) = output(&mut emit);
    assert!(done.status.success(), "{said}");
    let text = String::from_utf8(done.stdout).unwrap();
    let seconds: Vec<&str> = text
        .split("static inline int straight0_on_packet_")
        .skip(1)
        .filter_map(|rest| rest.split("\n}\n").next())
        .collect();
    // Behind UDP, and behind TCP.
    assert_eq!(seconds.len(), 2);
    for second in seconds {
        // A load from the packet carries a proof; those of settings do not.
        assert!(!second.contains("*(const volatile"), "{second}");
        assert!(second.matches("MR_KNOWN(").count() > 8, "{second}");
    }
}
