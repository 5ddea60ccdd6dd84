//! The packet that an ICMP error carries (RFC 792, RFC 4443).
//!
//! An error about a packet comes from the side that the packet went to, so it belongs where the answer to
//! that packet would have come: with the fields of the carried packet, source and destination swapped.

use millrace_wire::{Layers, Rule, Version, icmpv4, protocol, walk};

use crate::fields::{Kind, Parsed, of_layers};

/// For a frame that is an ICMP error: the packet that would have answered the one that it carries. A first
/// fragment, here and inside, counts as the whole packet: what is looked at is there. Of ICMPv6 only an error right behind the IPv6 header is one here.
///
/// With `echoes` an ICMP echo inside is taken as [`echo`] takes one.
#[must_use]
pub fn answered(frame: &[u8], echoes: bool) -> Option<Parsed> {
    answered_of(frame, &walk(frame, Rule::NIC), echoes)
}

/// The same of a frame that was walked before.
#[inline(always)]
pub(crate) fn answered_of(frame: &[u8], layers: &Layers, echoes: bool) -> Option<Parsed> {
    let outer = layers.ip?;
    if outer.version == Version::V6 && outer.extensions > 0 {
        return None;
    }
    let inner = layers.inner(frame, Rule::NIC)?;
    let own = of_layers(frame, &inner, true);
    let as_udp = if echoes {
        identified(frame, &inner, own)
    } else {
        None
    };
    let taken = as_udp.unwrap_or(own);
    (taken.kind != Kind::NotIp).then(|| taken.answer())
}

/// For a frame that is an ICMP echo over IPv4 (RFC 792), read as `own`: the packet that it is taken for, a UDP packet
/// between the same hosts. The identifier stands in for the source port of a request and the
/// destination port of a reply, so that the reply is the answer; the other port is 0.
#[must_use]
pub fn echo(frame: &[u8], own: Parsed) -> Option<Parsed> {
    identified(frame, &walk(frame, Rule::NIC), own)
}

/// The same of a packet that was walked before.
#[inline(always)]
pub(crate) fn identified(frame: &[u8], layers: &Layers, own: Parsed) -> Option<Parsed> {
    let upper = layers.ip?.upper?;
    if own.kind != Kind::Ipv4 || upper.protocol != protocol::ICMP {
        return None;
    }
    let echo = icmpv4::echo(frame.get(upper.at..)?)?;
    let [high, low] = echo.identifier.to_be_bytes();
    Some(own.as_udp(if echo.request {
        [high, low, 0, 0]
    } else {
        [0, 0, high, low]
    }))
}

#[cfg(test)]
mod tests {
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
        assert_eq!(answered(&error, false), Some(parse(&answer)));
        assert_eq!(answered(&sent, false), None);
        let echo = IcmpEchoHeader { id: 3, seq: 5 };
        assert_eq!(
            answered(&icmp(Icmpv4Type::EchoRequest(echo), &sent[14..]), true),
            None
        );
    }

    #[test]
    fn an_echo_counts_as_udp_with_its_identifier() {
        let id = IcmpEchoHeader { id: 777, seq: 5 };
        let ask = |kind, from, to| {
            let mut frame = Vec::new();
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
            builder.icmpv4(kind).write(&mut frame, b"").unwrap();
            frame
        };
        let (here, there) = ([10, 0, 0, 1], [8, 8, 8, 8]);
        let request = ask(Icmpv4Type::EchoRequest(id), here, there);
        let reply = ask(Icmpv4Type::EchoReply(id), there, here);
        let taken = |frame: &[u8]| echo(frame, parse(frame));
        assert_eq!(taken(&request), Some(parse(&udp(here, there, (777, 0)))));
        assert_eq!(taken(&reply), taken(&request).map(Parsed::answer));
        // An error about a request comes as the reply would; other packets are what they are.
        let unreachable = etherparse::icmpv4::DestUnreachableHeader::Host;
        let error = icmp(
            Icmpv4Type::DestinationUnreachable(unreachable),
            &request[14..],
        );
        assert_eq!(answered(&error, true), taken(&reply));
        assert_ne!(answered(&error, false), taken(&reply));
        assert_eq!(taken(&error), None);
        assert_eq!(taken(&udp(here, there, (777, 0))), None);
        assert_eq!(taken(&request[..38]), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(cut in 0_usize..80, mut frame in proptest::collection::vec(0_u8.., 80), six: bool) {
            frame[12..15].copy_from_slice(if six { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] });
            frame[20..24].copy_from_slice(if six { &[58, 9, 9, 9] } else { &[0, 0, 9, 1] });
            let _ = answered(&frame[..cut], true);
            let _ = echo(&frame[..cut], parse(&frame[..cut]));
        }
    }
}
