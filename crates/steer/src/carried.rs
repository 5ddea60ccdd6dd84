//! The packet that an ICMP error carries (RFC 792, RFC 4443).
//!
//! An error about a packet comes from the side that the packet went to, so it belongs where the answer to
//! that packet would have come: with the fields of the carried packet, source and destination swapped.

use crate::fields::{IPV4, Kind, LATER, Parsed, ipv4, ipv6, network};

/// Bytes of the ICMP header before the carried packet.
const HEADER: usize = 8;
/// Destination unreachable, source quench, redirect, time exceeded, parameter problem.
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// For a frame that is an ICMP error: the packet that would have answered the one that it carries. A first
/// fragment, here and inside, counts as the whole packet: what is looked at is there. Of ICMPv6 only an error right behind the IPv6 header is one here.
#[must_use]
pub fn answered(frame: &[u8]) -> Option<Parsed> {
    let (kind, packet) = network(frame)?;
    let inner = if kind == IPV4 {
        if ipv4(packet, LATER).kind != Kind::Ipv4 || *packet.get(9)? != ICMP {
            return None;
        }
        let message = packet.get(usize::from(packet.first()? & 0xf) * 4..)?;
        if !ERRORS.contains(message.first()?) {
            return None;
        }
        ipv4(message.get(HEADER..)?, LATER)
    } else {
        if ipv6(packet).kind != Kind::Ipv6 || *packet.get(6)? != ICMPV6 {
            return None;
        }
        let message = packet.get(40..)?;
        // RFC 4443, section 2.1: errors are below 128; those defined are 1 to 4.
        if !(1..=4).contains(message.first()?) {
            return None;
        }
        ipv6(message.get(HEADER..)?)
    };
    (inner.kind != Kind::NotIp).then(|| inner.answer())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fields::parse;
    use etherparse::{IcmpEchoHeader, Icmpv4Type, PacketBuilder};

    fn udp(from: [u8; 4], to: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
        builder
            .udp(ports.0, ports.1)
            .write(&mut frame, b"data")
            .unwrap();
        frame
    }

    fn icmp(kind: Icmpv4Type, body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([9, 9, 9, 9], [10, 0, 0, 1], 64);
        builder.icmpv4(kind).write(&mut frame, body).unwrap();
        frame
    }

    #[test]
    fn an_error_stands_where_the_answer_would() {
        let sent = udp([10, 0, 0, 1], [8, 8, 8, 8], (5000, 53));
        let answer = udp([8, 8, 8, 8], [10, 0, 0, 1], (53, 5000));
        let unreachable = etherparse::icmpv4::DestUnreachableHeader::Port;
        // Routers carry the header and eight bytes.
        let error = icmp(
            Icmpv4Type::DestinationUnreachable(unreachable),
            &sent[14..42],
        );
        assert_eq!(answered(&error), Some(parse(&answer)));
        assert_eq!(answered(&sent), None);
        let echo = IcmpEchoHeader { id: 3, seq: 5 };
        assert_eq!(
            answered(&icmp(Icmpv4Type::EchoRequest(echo), &sent[14..])),
            None
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(cut in 0_usize..80, mut frame in proptest::collection::vec(0_u8.., 80), six: bool) {
            frame[12..15].copy_from_slice(if six { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] });
            frame[20..24].copy_from_slice(if six { &[58, 9, 9, 9] } else { &[0, 0, 9, 1] });
            let _ = answered(&frame[..cut]);
        }
    }
}
