//! The packet language: texts to bytes and back, and what errors say.

use crate::common;

use common::{corpora, drain};
use etherparse::{LaxPacketHeaders, NetHeaders, PacketBuilder, TransportHeader};
use millrace_tables::rows;
use millrace_traffic::capture::Reader;
use millrace_traffic::language::{Packet, describe, packet, summarise};
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn gives(text: &str, expected: &str) {
    let bytes = packet(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(hex(&bytes), expected.replace(' ', ""), "{text}");
}

const MACS: &str = "020000000002 020000000001";

#[test]
fn known_vectors() {
    // The IPv4 header of RFC 1071's usual worked example: checksum 0xb861.
    gives(
        "eth / ip 192.168.0.1 > 192.168.0.199 ttl 64 df proto 17 len 115 / cut 34",
        &format!("{MACS} 0800 4500 0073 0000 4000 4011 b861 c0a80001 c0a800c7"),
    );
    gives(
        "eth / arp who-has 10.0.0.2 tell 10.0.0.1",
        &format!("{MACS} 0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002"),
    );
    gives(
        "eth 02:00:00:00:00:09 > ff:ff:ff:ff:ff:ff / arp reply 10.0.0.2 is-at 02:00:00:00:00:0a",
        "ffffffffffff 020000000009 0806 0001 0800 06 04 0002 02000000000a 0a000002 ffffffffffff 00000000",
    );
    gives(
        "eth / vlan 5 pcp 3 tpid 0x88a8 / vlan 6 / payload 0102",
        &format!("{MACS} 88a8 6005 8100 0006 88b5 0102"),
    );
    gives("eth type 0x88cc", &format!("{MACS} 88cc"));
    // ICMP's sum: 0x0d00 + 0x0001 + 0x0002 + 0x0003 = 0x0d06.
    let icmp = "eth / ip 192.168.0.1 > 192.168.0.199 df ttl 64 checksum 0x0001 / \
                icmp type 13 rest 000100020003";
    let expected =
        format!("{MACS} 0800 4500001e0000400040010001c0a80001c0a800c7 0d00f2f9000100020003");
    gives(icmp, &expected);
    assert_eq!(
        icmp.parse::<Packet>().unwrap().to_string(),
        icmp.replace("df ttl 64", "ttl 64 df")
    );
    gives("raw 0102 03", "010203");
    gives("eth / payload zeros 3", &format!("{MACS} 88b5 000000"));
    gives("eth / payload \"a\\\"\\n\"", &format!("{MACS} 88b5 61220a"));
    gives(
        "eth / ip6 2001:db8::1 > 2001:db8::2 hop 9 class 2 label 0x12345 / hopopts 0104 / \
         frag6 offset 16 more id 7 next 17 / payload ff / cut 62",
        &format!(
            "{MACS} 86dd 60212345 0011 00 09 20010db8000000000000000000000001 \
             20010db8000000000000000000000002 2c00010400000000"
        ),
    );
}

/// Tunnels and SCTP: the bytes that their RFCs say, and the same text again.
#[test]
fn tunnels() {
    let inner = "eth / ip 10.1.0.1 > 10.1.0.2 / udp 5 > 6 / payload \"inside\"";
    let cases = [
        // RFC 9260; the sum and that of GRE were computed apart.
        ("ip {A} / sctp 1 > 2 tag 9 / payload 00030004".to_owned(), 132, "00010002000000099264a32500030004".to_owned()),
        (
            "ip {A} / gre sum key 7 seq 9 / payload 0102".to_owned(),
            47,
            "b00088b5c637000000000007000000090102".to_owned(),
        ),
        (format!("ip {{A}} / gre / {inner}"), 47, format!("00006558{}", hex(&packet(inner).unwrap()))),
        (
            "ip {A} / gre key 0 / mpls 16 tc 5 / mpls 17 ttl 9 / ip 10.1.0.1 > 10.1.0.2 / tcp 1 > 2".to_owned(),
            47,
            "200088470000000000010a4000011109".to_owned(),
        ),
        (
            "ip {A} / mpls 3 / ip6 2001:db8::1 > 2001:db8::2 / sctp 3 > 4".to_owned(),
            137,
            "0000314060000000".to_owned(),
        ),
        (
            format!("ip {{A}} / udp 9 > 4789 / vxlan 4660 / {inner}"),
            17,
            format!("0800000000123400{}", hex(&packet(inner).unwrap())),
        ),
        (
            format!("ip {{A}} / udp 9 > 6081 / geneve 5 critical options 0103000101020304 / {inner}"),
            17,
            format!("0240655800000500{}{}", "0103000101020304", hex(&packet(inner).unwrap())),
        ),
        (
            "ip {A} / udp 9 > 6081 / geneve 5 / ip6 2001:db8::1 > 2001:db8::2 / tcp 1 > 2 syn".to_owned(),
            17,
            "000086dd0000050060000000".to_owned(),
        ),
        ("ip {A} / udp 9 > 6635 / mpls 1000 / ip 10.1.0.1 > 10.1.0.2 / icmp echo 1 2".to_owned(), 17, "003e8140450".to_owned()),
    ];
    for (text, protocol, holds) in cases {
        let text = format!("eth / {}", text.replace("{A}", "192.0.2.1 > 192.0.2.2"));
        let bytes = packet(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(
            hex(&bytes).contains(&holds),
            "{text}: {} has no {holds}",
            hex(&bytes)
        );
        assert_eq!(describe(&bytes), text);
        // What etherparse knows: the headers around.
        let parsed = LaxPacketHeaders::from_ethernet(&bytes).unwrap();
        let Some(NetHeaders::Ipv4(ip, _)) = &parsed.net else {
            panic!("{text}: no IPv4")
        };
        assert_eq!(ip.protocol.0, protocol, "{text}");
        assert_eq!(ip.header_checksum, ip.calc_header_checksum(), "{text}");
        assert_eq!(usize::from(ip.total_len), bytes.len() - 14, "{text}");
        if let Some(TransportHeader::Udp(udp)) = &parsed.transport {
            let payload = bytes.get(42..).unwrap();
            assert_eq!(
                udp.checksum,
                udp.calc_checksum_ipv4(ip, payload).unwrap(),
                "{text}"
            );
        }
    }
    // Ethernet right inside UDP has no port of its own.
    let bytes = packet("eth / ip 192.0.2.1 > 192.0.2.2 / udp 1 > 2 / eth / payload 0102").unwrap();
    assert_eq!(packet(&describe(&bytes)).unwrap(), bytes);
    // A bit that no word says: a payload.
    let odd =
        packet("eth / ip 192.0.2.1 > 192.0.2.2 / udp 1 > 4789 / payload 0800000000000701 0102")
            .unwrap();
    assert!(describe(&odd).contains("payload"));
    assert_eq!(packet(&describe(&odd)).unwrap(), odd);
    let wrong = packet("eth / ip 192.0.2.1 > 192.0.2.2 / udp 1 > 4789 / vxlan / eth").unwrap_err();
    assert!(wrong.message.contains("VNI"), "{wrong}");
}

/// Every layer that etherparse builds too: the same bytes.
#[test]
fn an_independent_builder_agrees() {
    let (a, b) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let v4 = || PacketBuilder::ethernet2(a, b).ipv4([10, 0, 0, 1], [192, 0, 2, 1], 64);
    let v6 = || {
        PacketBuilder::ethernet2(a, b).ipv6(
            "2001:db8::1"
                .parse::<std::net::Ipv6Addr>()
                .unwrap()
                .octets(),
            "2001:db8::2"
                .parse::<std::net::Ipv6Addr>()
                .unwrap()
                .octets(),
            64,
        )
    };
    let build = |step: etherparse::PacketBuilderStep<etherparse::UdpHeader>, payload: &[u8]| {
        let mut bytes = Vec::new();
        step.write(&mut bytes, payload).unwrap();
        bytes
    };
    for (text, expected) in [
        (
            "eth / ip 10.0.0.1 > 192.0.2.1 / udp 5 > 53 / payload \"odd\"",
            build(v4().udp(5, 53), b"odd"),
        ),
        (
            "eth / ip6 2001:db8::1 > 2001:db8::2 / udp 5 > 53 / payload \"odd\"",
            build(v6().udp(5, 53), b"odd"),
        ),
    ] {
        // etherparse sets the don't-fragment bit; so does the text here, where IPv4.
        let text = text.replace("192.0.2.1 /", "192.0.2.1 df /");
        assert_eq!(hex(&packet(&text).unwrap()), hex(&expected), "{text}");
    }
    let mut expected = Vec::new();
    let tcp = v4()
        .tcp(1234, 80, 7, 1000)
        .syn()
        .ack(9)
        .options_raw(&[2, 4, 5, 0xb4])
        .unwrap();
    tcp.write(&mut expected, b"hello").unwrap();
    let text = "eth / ip 10.0.0.1 > 192.0.2.1 df / \
                tcp 1234 > 80 syn ack seq 7 ackno 9 win 1000 options 020405b4 / payload \"hello\"";
    assert_eq!(hex(&packet(text).unwrap()), hex(&expected));
    let mut expected = Vec::new();
    v6().tcp(1234, 80, 7, 1000)
        .fin()
        .rst()
        .psh()
        .write(&mut expected, &[0; 9])
        .unwrap();
    let text = "eth / ip6 2001:db8::1 > 2001:db8::2 / tcp 1234 > 80 fin rst psh seq 7 win 1000 / \
                payload zeros 9";
    assert_eq!(hex(&packet(text).unwrap()), hex(&expected));
    let mut expected = Vec::new();
    v4().icmpv4_echo_request(77, 3)
        .write(&mut expected, b"ping!")
        .unwrap();
    let text = "eth / ip 10.0.0.1 > 192.0.2.1 df / icmp echo 77 3 / payload \"ping!\"";
    assert_eq!(hex(&packet(text).unwrap()), hex(&expected));
    let mut expected = Vec::new();
    v6().icmpv6_echo_reply(77, 3)
        .write(&mut expected, b"ping!")
        .unwrap();
    let text = "eth / ip6 2001:db8::1 > 2001:db8::2 / icmp6 reply 77 3 / payload \"ping!\"";
    assert_eq!(hex(&packet(text).unwrap()), hex(&expected));
    let mut expected = Vec::new();
    PacketBuilder::ethernet2(a, b)
        .double_vlan(100.try_into().unwrap(), 7.try_into().unwrap())
        .ipv4([1, 2, 3, 4], [5, 6, 7, 8], 3)
        .udp(1, 2)
        .write(&mut expected, b"x")
        .unwrap();
    let text = "eth / vlan 100 tpid 0x88a8 / vlan 7 / ip 1.2.3.4 > 5.6.7.8 ttl 3 df / udp 1 > 2 / \
                payload 78";
    assert_eq!(hex(&packet(text).unwrap()), hex(&expected));
}

/// Texts that are already in the shortest form: decoding their bytes gives them again.
#[test]
fn canonical_texts_come_back() {
    for text in [
        "eth / ip 10.0.0.1 > 192.0.2.1 / tcp 1234 > 80 syn seq 5 win 1000 options 020405b4",
        "eth 02:00:00:00:00:09 > ff:ff:ff:ff:ff:ff / arp who-has 10.0.0.2 tell 10.0.0.1",
        "eth / ip 10.0.0.1 > 192.0.2.1 ttl 1 id 3 tos 16 df / udp 1 > 2 checksum 0x0000 / payload \"hello\"",
        "eth / ip 10.0.0.1 > 192.0.2.1 options 94040000 / icmp echo 1 2",
        "eth / ip 10.0.0.1 > 192.0.2.1 frag 1480 proto 17 / payload 010203",
        "eth / ip 10.0.0.1 > 192.0.2.1 more / udp 1 > 2 len 3000 / payload zeros 16",
        "eth / ip 10.0.0.1 > 192.0.2.1 checksum 0xdead / udp 1 > 2",
        "eth / ip 9.9.9.9 > 10.0.0.1 / icmp unreachable 1 / ip 10.0.0.1 > 1.1.1.1 / udp 5 > 53",
        "eth / ip 9.9.9.9 > 10.0.0.1 / icmp unreachable 4 rest 00000578",
        "eth / vlan 7 pcp 5 tpid 0x88a8 / vlan 8 / ip6 ::1 > ::2 / tcp 1 > 2 ack ackno 9",
        "eth / ip6 fe80::1 > ff02::1 hop 255 class 3 label 9 / icmp6 toobig 1280 / ip6 ::1 > ::2 / udp 1 > 2",
        "eth / ip6 fe80::1 > ff02::1 / hopopts 050200000100 / icmp6 type 143 rest 00000001",
        "eth / ip6 ::1 > ::2 / frag6 offset 8 id 7 next 17 / payload 0102030405060708",
        "eth / ip6 ::1 > ::2 / routing 020000000000 / dstopts 010400000000 / tcp 1 > 2 rst",
        "eth / ip6 ::1 > ::2 next 59",
        "eth / ip 10.0.0.1 > 10.0.0.2 / ip 1.1.1.1 > 2.2.2.2 / udp 7 > 7",
        "eth / ip 10.0.0.1 > 10.0.0.2 / udp 7 > 7 / trailer zeros 18",
        "eth / ip 10.0.0.1 > 10.0.0.2 / udp 7 > 7 / payload \"say \\\"hi\\\"\\n\"",
        "eth type 0x88cc / payload 0207",
        "eth type 0x0800 / payload zeros 4",
        "raw 0102",
    ] {
        // Next header 59 is what a packet that ends there gets anyway.
        let shortest = text.replace(" next 59", "");
        assert_eq!(describe(&packet(text).unwrap()), shortest);
    }
}

#[test]
fn long_payloads_are_cut_short_for_people() {
    let bytes = packet(&format!("eth / payload {}", "ab".repeat(100))).unwrap();
    let text = summarise(&bytes);
    assert_eq!(
        text,
        format!("eth / payload {}… (100 bytes)", "ab".repeat(24))
    );
    assert_eq!(packet(&describe(&bytes)).unwrap(), bytes);
}

#[test]
fn every_packet_of_the_corpora_comes_back() {
    let Some(folder) = corpora() else { return };
    let (mut packets, mut understood) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pcap") {
            continue;
        }
        for packet in drain(Reader::open(&path).unwrap()).0 {
            let text = describe(&packet.data);
            let again = text
                .parse::<Packet>()
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(again.bytes() == packet.data, "{text}");
            packets += 1;
            understood += u32::from(text.contains("tcp") || text.contains("udp"));
        }
    }
    assert!(packets > 10_000);
    // Exactness alone could be had by giving every packet as raw bytes.
    assert!(understood * 100 > packets * 95, "{understood} of {packets}");
}

/// A text, the column that is wrong, and a part of what is said.
const WRONG: &str = r#"
                                                     | 1  | eth, raw
ip 1.1.1.1 > 2.2.2.2                                 | 1  | begins with one of: eth, raw
eth / tcp 1 > 2                                      | 7  | cannot be inside `eth`; there may be: vlan, ip, ip6, arp
eth / ip 10.0.0.256 > 2.2.2.2                        | 10 | an IPv4 address
eth / ip 10.0.0.1 2.2.2.2                            | 19 | `>`
eth / ip 10.0.0.1 > 2.2.2.2 ttl 256                  | 33 | 0 to 255
eth / ip 10.0.0.1 > 2.2.2.2 ttl -1                   | 33 | 0 to 255
eth / ip 10.0.0.1 > 2.2.2.2 ttl                      | 32 | the line ends
eth / ip 10.0.0.1 > 2.2.2.2 ttl 1 ttl 2              | 35 | given before
eth / ip 10.0.0.1 > 2.2.2.2 frag 9                   | 34 | multiple of 8
eth / ip 10.0.0.1 > 2.2.2.2 tll 9                    | 29 | a word of `ip`: ttl, id, tos
eth / ip 1.1.1.1 > 2.2.2.2 / udp 1 > 65536           | 38 | 0 to 65535
eth / ip 1.1.1.1 > 2.2.2.2 / icmp code 1             | 35 | which message?
eth / ip 1.1.1.1 > 2.2.2.2 / icmp echo 1 2 reply 1 2 | 44 | given before
eth / ip 1.1.1.1 > 2.2.2.2 options 012               | 36 | two digits a byte
eth / payload zeros 70000                            | 21 | 0 to 65535
eth / payload "open                                  | 15 | closing
eth / payload $i                                     | 15 | between `repeat` and `end`
eth / payload 01 / cut 17                            | 20 | only 15 bytes
eth / cut 3 / payload 01                             | 13 | the end of the line
eth / cut                                            | 10 | 0 to
eth /                                                | 6  | a layer
eth 02:00:00:00:00:01 > 2                            | 25 | a MAC address
eth / raw zeros 65535 / raw zeros 65535 / raw zeros 65535 / raw zeros 65535 / raw zeros 65535 | 79 | at most
eth / ip 1.1.1.1 > 2.2.2.2 / raw zeros 65535         | 7  | give it a `len`
"#;

#[test]
fn errors_say_where_and_what_is_allowed() {
    for [text, column, part] in rows(WRONG) {
        let error = packet(&text).unwrap_err();
        assert_eq!(error.column.to_string(), column, "{text}: {error}");
        assert!(error.message.contains(&part), "{text}: {error}");
    }
    let deep = format!("eth{}", " / vlan 1".repeat(100));
    assert!(
        packet(&deep)
            .unwrap_err()
            .message
            .contains("more than 64 layers")
    );
}

/// Packets that a text can say: the checksums hold by another implementation's account.
fn texts() -> impl Strategy<Value = String> {
    let network = prop_oneof![
        (any::<[u8; 4]>(), any::<[u8; 4]>(), 1..=255_u8).prop_map(|(a, b, ttl)| {
            format!(
                "ip {} > {} ttl {ttl}",
                std::net::Ipv4Addr::from(a),
                std::net::Ipv4Addr::from(b)
            )
        }),
        (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| {
            format!(
                "ip6 {} > {}",
                std::net::Ipv6Addr::from(a),
                std::net::Ipv6Addr::from(b)
            )
        }),
    ];
    let transport = prop_oneof![
        (any::<u16>(), any::<u16>(), any::<u32>())
            .prop_map(|(a, b, seq)| format!("tcp {a} > {b} ack seq {seq}")),
        (any::<u16>(), any::<u16>()).prop_map(|(a, b)| format!("udp {a} > {b}")),
    ];
    let payload = proptest::collection::vec(any::<u8>(), 1..64);
    (network, transport, payload, any::<bool>()).prop_map(
        |(network, transport, payload, tagged)| {
            let tag = if tagged { " / vlan 9" } else { "" };
            format!(
                "eth{tag} / {network} / {transport} / payload {}",
                hex(&payload)
            )
        },
    )
}

proptest! {
    #[test]
    fn checksums_hold(text in texts()) {
        let bytes = packet(&text).unwrap();
        let headers = LaxPacketHeaders::from_ethernet(&bytes).unwrap();
        prop_assert!(headers.stop_err.is_none());
        let net = headers.net.unwrap();
        let payload = headers.payload.slice();
        if let NetHeaders::Ipv4(ip, _) = &net {
            prop_assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
        }
        match (net, headers.transport.unwrap()) {
            (NetHeaders::Ipv4(ip, _), TransportHeader::Tcp(tcp)) => {
                prop_assert_eq!(tcp.calc_checksum_ipv4(&ip, payload).unwrap(), tcp.checksum);
            }
            (NetHeaders::Ipv4(ip, _), TransportHeader::Udp(udp)) => {
                prop_assert_eq!(udp.calc_checksum_ipv4(&ip, payload).unwrap(), udp.checksum);
            }
            (NetHeaders::Ipv6(ip, _), TransportHeader::Tcp(tcp)) => {
                prop_assert_eq!(tcp.calc_checksum_ipv6(&ip, payload).unwrap(), tcp.checksum);
            }
            (NetHeaders::Ipv6(ip, _), TransportHeader::Udp(udp)) => {
                prop_assert_eq!(udp.calc_checksum_ipv6(&ip, payload).unwrap(), udp.checksum);
            }
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(packet(&describe(&bytes)).unwrap(), bytes);
    }

    #[test]
    fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        prop_assert_eq!(packet(&describe(&bytes)).unwrap(), bytes);
    }

    /// A good packet with bytes changed reaches further into the decoder than noise does.
    #[test]
    fn damaged_packets_come_back(
        text in texts(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cut in any::<usize>(),
    ) {
        let mut bytes = packet(&text).unwrap();
        for (at, value) in changes {
            let at = at % bytes.len().min(60);
            bytes[at] = value;
        }
        if cut.is_multiple_of(3) {
            bytes.truncate(cut % bytes.len());
        }
        prop_assert_eq!(packet(&describe(&bytes)).unwrap(), bytes);
    }

    #[test]
    fn no_text_panics(text in "[ -~]{0,80}", words in proptest::collection::vec(
        proptest::sample::select(vec![
            "eth", "/", "ip", ">", "10.0.0.1", "tcp", "80", "syn", "options", "0204", "payload",
            "zeros", "cut", "raw", "icmp", "echo", "vlan", "ip6", "::1", "frag6", "more", "trailer",
        ]), 0..20)) {
        let _ = packet(&text);
        if let Ok(bytes) = packet(&words.join(" ")) {
            prop_assert_eq!(packet(&describe(&bytes)).unwrap(), bytes);
        }
    }
}
