//! The packet that an ICMP error carries.
//!
//! A function that looks such a packet up asks for the flow that the error is about, while a NIC hashes
//! the addresses of the error itself, which any router on the path may have sent. So errors are steered
//! in software, as the packet that would answer the one they carry: it enters at the port that the error
//! enters at, and a flow's owner is the owner of its answers. RFC 792, RFC 4443 (2.4 and 3).

use crate::fields::{Parsed, ipv4, ipv6};

const ETHERTYPE: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// 802.1Q, 802.1ad and the older 0x9100.
const VLAN: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]];
/// As many tags as the fields' parser steps over.
const MAX_TAGS: usize = 4;
/// Bytes of an ICMP header, which is of the same length in both versions.
const ICMP_BYTES: usize = 8;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The fields of the packet that would answer the one that this frame carries; none where it is not an
/// ICMP error, or carries too little of a packet. Errors behind extension headers of IPv6, and in
/// fragments, are not recognised.
#[must_use]
pub fn answered(frame: &[u8]) -> Option<Parsed> {
    let mut at = ETHERTYPE;
    for _ in 0..MAX_TAGS {
        let kind = frame.get(at..)?.first_chunk::<2>()?;
        if !VLAN.contains(kind) {
            break;
        }
        at += 4;
    }
    let kind = *frame.get(at..)?.first_chunk::<2>()?;
    let packet = frame.get(at + 2..)?;
    let inner = match kind {
        IPV4 => {
            let header = packet.first_chunk::<20>()?;
            let length = usize::from(header[0] & 0xf) * 4;
            let whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
            if header[0] >> 4 != 4 || length < 20 || header[9] != ICMP || !whole {
                return None;
            }
            // Unreachable, source quench, redirect, time exceeded, parameter problem.
            matches!(packet.get(length)?, 3 | 4 | 5 | 11 | 12).then_some(())?;
            ipv4(packet.get(length + ICMP_BYTES..)?)
        }
        IPV6 => {
            let header = packet.first_chunk::<40>()?;
            if header[0] >> 4 != 6 || header[6] != ICMPV6 {
                return None;
            }
            // Unreachable, too big, time exceeded, parameter problem.
            matches!(packet.get(40)?, 1..=4).then_some(())?;
            ipv6(packet.get(40 + ICMP_BYTES..)?)
        }
        _ => return None,
    };
    (inner.kind != crate::Kind::NotIp).then(|| inner.reversed())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fields::{Field, Kind, parse};
    use etherparse::PacketBuilder;

    const MACS: ([u8; 6], [u8; 6]) = ([2; 6], [4; 6]);

    /// A UDP packet without its Ethernet header, cut after `bytes`.
    fn inner(bytes: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .ipv4([10, 0, 0, 1], [192, 0, 2, 9], 1)
            .udp(1000, 53);
        builder.write(&mut frame, b"question").unwrap();
        frame[14..][..bytes].to_vec()
    }

    fn error(kind: u8, carries: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .ipv4([192, 0, 2, 1], [10, 0, 0, 1], 64)
            .icmpv4_raw(kind, 0, [0; 4]);
        builder.write(&mut frame, carries).unwrap();
        frame
    }

    #[test]
    fn an_error_is_taken_for_the_answer_to_what_it_carries() {
        for kind in [3, 4, 5, 11, 12] {
            let found = answered(&error(kind, &inner(28))).unwrap();
            assert_eq!(found.kind, Kind::Ipv4Udp);
            assert_eq!(found.field(Field::SourceAddress), [192, 0, 2, 9]);
            assert_eq!(found.field(Field::DestinationAddress), [10, 0, 0, 1]);
            assert_eq!(found.field(Field::SourcePort), 53_u16.to_be_bytes());
            assert_eq!(found.field(Field::DestinationPort), 1000_u16.to_be_bytes());
        }
        // 20 bytes of a header and no ports: still addresses.
        assert_eq!(answered(&error(3, &inner(20))).unwrap().kind, Kind::Ipv4);
    }

    #[test]
    fn queries_and_what_is_cut_short_are_not_errors() {
        assert!(answered(&error(8, &inner(28))).is_none());
        assert!(answered(&error(3, &inner(19))).is_none());
        let whole = error(11, &inner(28));
        for end in 0..whole.len() - 8 {
            // Whatever is left, reading it ends.
            let _ = answered(&whole[..end]);
        }
        assert!(answered(&whole[..50]).is_none());
    }

    #[test]
    fn errors_of_ipv6_and_under_tags_are_recognised() {
        let mut carried = Vec::new();
        let (a, b) = ([0x20; 16], [0xfd; 16]);
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .ipv6(b, a, 1)
            .tcp(9, 80, 1, 1);
        builder.write(&mut carried, b"").unwrap();
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .ipv6([1; 16], b, 64)
            .icmpv6_raw(3, 0, [0; 4]);
        builder.write(&mut frame, &carried[14..]).unwrap();
        let mut tagged = frame[..12].to_vec();
        tagged.extend_from_slice(&[0x81, 0, 0, 7]);
        tagged.extend_from_slice(&frame[12..]);
        for frame in [frame, tagged] {
            assert_eq!(answered(&frame), Some(parse(&carried).reversed()));
        }
    }
}
