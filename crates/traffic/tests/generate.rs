//! Made traffic keeps what its specification says.

use crate::common;

use std::collections::{HashMap, HashSet};

use common::Sink;
use etherparse::{LaxPacketHeaders, NetHeaders, TcpHeader, TransportHeader};
use millrace_traffic::capture::{Format, Writer};
use millrace_traffic::generate::{Generator, Mix, Size, Spec, SpecError};

fn each(spec: &Spec, mut look: impl FnMut(u64, u32, &[u8])) -> u64 {
    let mut generator = Generator::new(spec.clone()).unwrap();
    let mut packets = 0;
    while let Some(record) = generator.next() {
        packets += 1;
        look(record.time_ns, record.interface, record.data);
    }
    packets
}

/// Addresses and ports as the LAN sees them, the protocol with them.
type Tuple = (Vec<u8>, Vec<u8>, u8, u16, u16);

fn parse(port: u32, data: &[u8]) -> (Tuple, Option<TcpHeader>, usize) {
    let headers = LaxPacketHeaders::from_ethernet(data).unwrap();
    assert!(headers.stop_err.is_none());
    let payload = headers.payload.slice();
    let (source, destination, protocol) = match headers.net.as_ref().unwrap() {
        NetHeaders::Ipv4(ip, _) => {
            assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
            assert_eq!(usize::from(ip.total_len) + 14, data.len());
            (ip.source.to_vec(), ip.destination.to_vec(), ip.protocol.0)
        }
        NetHeaders::Ipv6(ip, _) => {
            assert_eq!(usize::from(ip.payload_length) + 54, data.len());
            (
                ip.source.to_vec(),
                ip.destination.to_vec(),
                ip.next_header.0,
            )
        }
        NetHeaders::Arp(_) => panic!("no ARP is made"),
    };
    let mut tcp = None;
    let (from, to) = match (headers.net.unwrap(), headers.transport.unwrap()) {
        (NetHeaders::Ipv4(ip, _), TransportHeader::Tcp(header)) => {
            assert_eq!(
                header.calc_checksum_ipv4(&ip, payload).unwrap(),
                header.checksum
            );
            let ports = (header.source_port, header.destination_port);
            tcp = Some(header);
            ports
        }
        (NetHeaders::Ipv6(ip, _), TransportHeader::Tcp(header)) => {
            assert_eq!(
                header.calc_checksum_ipv6(&ip, payload).unwrap(),
                header.checksum
            );
            let ports = (header.source_port, header.destination_port);
            tcp = Some(header);
            ports
        }
        (NetHeaders::Ipv4(ip, _), TransportHeader::Udp(header)) => {
            assert_eq!(
                header.calc_checksum_ipv4(&ip, payload).unwrap(),
                header.checksum
            );
            (header.source_port, header.destination_port)
        }
        (NetHeaders::Ipv6(ip, _), TransportHeader::Udp(header)) => {
            assert_eq!(
                header.calc_checksum_ipv6(&ip, payload).unwrap(),
                header.checksum
            );
            (header.source_port, header.destination_port)
        }
        (NetHeaders::Ipv4(..), TransportHeader::Icmpv4(header)) => {
            assert_eq!(header.icmp_type.calc_checksum(payload), header.checksum);
            let identifier = u16::from_be_bytes([data[38], data[39]]);
            if port == 0 {
                (identifier, 0)
            } else {
                (0, identifier)
            }
        }
        (NetHeaders::Ipv6(ip, _), TransportHeader::Icmpv6(header)) => {
            let sum = header
                .icmp_type
                .calc_checksum(ip.source, ip.destination, payload)
                .unwrap();
            assert_eq!(sum, header.checksum);
            let identifier = u16::from_be_bytes([data[58], data[59]]);
            if port == 0 {
                (identifier, 0)
            } else {
                (0, identifier)
            }
        }
        other => panic!("{other:?}"),
    };
    let tuple = match port {
        0 => (source, destination, protocol, from, to),
        _ => (destination, source, protocol, to, from),
    };
    (tuple, tcp, payload.len())
}

fn mixed() -> Spec {
    Spec {
        packets: 20_000,
        flows: 300,
        ipv6: 0.4,
        mix: Mix {
            tcp: 6.0,
            udp: 3.0,
            icmp: 1.0,
        },
        churn: 6000.0,
        rate: 10_000.0,
        ..Spec::default()
    }
}

#[test]
fn headers_and_checksums_are_right_and_senders_keep_their_side() {
    let mut protocols = HashMap::new();
    let packets = each(&mixed(), |_, port, data| {
        let ((lan, wan, protocol, ..), ..) = parse(port, data);
        assert!(
            lan.starts_with(&[10, 0]) || lan.starts_with(&[0xfd, 0]),
            "{lan:?}"
        );
        assert!(wan.starts_with(&[198, 18]) || wan.starts_with(&[198, 19]) || wan.len() == 16);
        *protocols.entry((protocol, lan.len())).or_insert(0) += 1;
    });
    assert_eq!(packets, 20_000);
    assert_eq!(protocols.len(), 6, "{protocols:?}");
}

/// Follows every connection: each packet must be the one that could come next.
fn follow(spec: &Spec) -> (usize, usize) {
    #[derive(Default)]
    struct Connection {
        next: [u32; 2],
        seen: [bool; 2],
        fins: u32,
        closed: bool,
    }
    let mut connections: HashMap<Tuple, Connection> = HashMap::new();
    let packets = each(spec, |_, port, data| {
        let (tuple, Some(tcp), payload) = parse(port, data) else {
            return;
        };
        let (me, other) = (port as usize, 1 - port as usize);
        let connection = connections.entry(tuple).or_default();
        assert!(!connection.closed, "a packet after the last");
        if tcp.syn {
            assert!(!connection.seen[me], "two SYNs");
            assert_eq!(tcp.ack, port == 1);
            assert_eq!(payload, 0);
            connection.next[me] = tcp.sequence_number;
            connection.seen[me] = true;
        }
        assert!(connection.seen[me], "data before SYN");
        assert_eq!(tcp.sequence_number, connection.next[me]);
        if tcp.ack {
            if spec.both {
                assert!(connection.seen[other]);
                assert_eq!(tcp.acknowledgment_number, connection.next[other]);
            }
        } else {
            assert!(tcp.syn);
        }
        let counted = payload as u32 + u32::from(tcp.syn) + u32::from(tcp.fin);
        connection.next[me] = connection.next[me].wrapping_add(counted);
        let sides = if spec.both { 2 } else { 1 };
        connection.closed = connection.fins == sides && !tcp.fin;
        connection.fins += u32::from(tcp.fin);
    });
    assert_eq!(packets, spec.packets);
    (
        connections.len(),
        connections
            .values()
            .filter(|connection| connection.closed)
            .count(),
    )
}

#[test]
fn connections_open_and_close_with_right_numbers() {
    for both in [true, false] {
        for churn in [0.0, 6000.0] {
            let spec = Spec {
                both,
                churn,
                mix: Mix {
                    tcp: 1.0,
                    udp: 0.0,
                    icmp: 0.0,
                },
                ..mixed()
            };
            let (opened, closed) = follow(&spec);
            assert_eq!(opened, closed, "both: {both}, churn: {churn}");
            assert!(opened > 150, "{opened}");
        }
        let (opened, closed) = follow(&Spec { both, ..mixed() });
        assert_eq!(opened, closed);
    }
}

#[test]
fn few_packets_are_still_exactly_as_many() {
    for packets in 0..40 {
        let spec = Spec {
            packets,
            flows: 5,
            ..Spec::default()
        };
        assert_eq!(each(&spec, |_, _, _| {}), packets);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let write = |seed| {
        let sink = Sink::new(usize::MAX);
        let mut writer = Writer::new("sink", sink.clone(), Format::Pcapng, &["lan", "wan"]);
        each(
            &Spec {
                seed,
                packets: 3000,
                ..mixed()
            },
            |time, port, data| {
                writer.write(time, port, 0, data).unwrap();
            },
        );
        writer.finish().unwrap();
        std::mem::take(&mut *sink.bytes.lock().unwrap())
    };
    let first = write(1);
    assert!(first == write(1));
    assert!(first != write(2));
    // Fixed once and for all: traffic that changes with the version would make runs incomparable.
    let sum = first.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    insta::assert_snapshot!(format!("{} bytes, FNV-1a {sum:016x}", first.len()));
}

#[test]
fn measuring_traffic_has_exactly_its_flows() {
    for (zipf, flows) in [(0.0, 1000), (1.1, 1000), (0.0, 70_000), (1.1, 1)] {
        for mix in ["udp", "tcp", "tcp:1,udp:1"] {
            let spec = Spec::measuring(flows, 80_000, 64, zipf, mix.parse().unwrap());
            let mut tuples = HashSet::new();
            let packets = each(&spec, |_, port, data| {
                assert_eq!((port, data.len()), (0, 64));
                tuples.insert((data[23], data[26..38].to_vec()));
            });
            assert_eq!(
                (packets, tuples.len() as u64),
                (80_000, flows),
                "{mix}, zipf {zipf}"
            );
        }
    }
}

#[test]
fn popularity_follows_zipf() {
    let share = |zipf| {
        let spec = Spec::measuring(1000, 200_000, 64, zipf, "udp".parse().unwrap());
        let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
        each(&spec, |_, _, data| {
            *counts.entry(data[26..38].to_vec()).or_default() += 1;
        });
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        (
            counts[0] as f64 / 200_000.0,
            counts[1] as f64 / counts[0] as f64,
        )
    };
    let (top, _) = share(0.0);
    assert!(top < 0.002, "{top}");
    // By Zipf's law with s = 1.1 the first has 1 / H(1000, 1.1) = 0.179, the second 2^-1.1 = 0.467 of it.
    let (top, second) = share(1.1);
    assert!((0.17..0.19).contains(&top), "{top}");
    assert!((0.44..0.49).contains(&second), "{second}");
}

#[test]
fn churn_replaces_so_many_flows_a_minute() {
    // 12 seconds of capture at 600 a minute: 120 flows beyond the first 50.
    let spec = Spec {
        packets: 120_000,
        flows: 50,
        zipf: 0.0,
        churn: 600.0,
        rate: 10_000.0,
        mix: "udp".parse().unwrap(),
        ..Spec::default()
    };
    let mut tuples = HashSet::new();
    each(&spec, |_, port, data| {
        tuples.insert(parse(port, data).0);
    });
    assert!((168..=170).contains(&tuples.len()), "{}", tuples.len());
}

#[test]
fn stamps_are_even_and_sizes_as_asked() {
    let mut last = None;
    let spec = Spec {
        rate: 3.0,
        packets: 31,
        churn: 0.0,
        ..mixed()
    };
    each(&spec, |time, _, _| {
        last = Some(time);
    });
    assert_eq!(last.unwrap() - spec.start_ns, 10_000_000_000);

    let spec = |size: &str| Spec {
        size: size.parse().unwrap(),
        mix: "udp".parse().unwrap(),
        packets: 12_000,
        ..Spec::default()
    };
    let lengths = |size| {
        let mut lengths: HashMap<usize, u64> = HashMap::new();
        each(&spec(size), |_, _, data| {
            *lengths.entry(data.len()).or_default() += 1;
        });
        lengths
    };
    let imix = lengths("imix");
    assert!((6700..7300).contains(&imix[&54]) && (3700..4300).contains(&imix[&590]));
    assert!((850..1150).contains(&imix[&1514]) && imix.len() == 3);
    assert_eq!(lengths("100-103").len(), 4);
    assert_eq!(lengths("9").keys().collect::<Vec<_>>(), [&42]);
    assert_eq!(lengths("65535").keys().collect::<Vec<_>>(), [&65535]);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let bad = |change: fn(&mut Spec)| {
        let mut spec = Spec::default();
        change(&mut spec);
        Generator::new(spec).err().unwrap()
    };
    assert_eq!(bad(|s| s.flows = 0), SpecError::Flows(0));
    assert_eq!(bad(|s| s.flows = 1 << 40), SpecError::Flows(1 << 40));
    assert!(matches!(bad(|s| s.zipf = f64::NAN), SpecError::Zipf(_)));
    assert!(matches!(bad(|s| s.zipf = -1.0), SpecError::Zipf(_)));
    assert!(matches!(bad(|s| s.rate = 0.0), SpecError::Rate(_)));
    assert!(matches!(bad(|s| s.churn = 1e9), SpecError::Churn { .. }));
    assert!(matches!(bad(|s| s.ipv6 = 1.5), SpecError::Ipv6(_)));
    assert_eq!(bad(|s| s.mix.tcp = -1.0), SpecError::Mix);
    assert_eq!(
        bad(|s| s.size = Size::Range(9, 8)),
        SpecError::Size("9-8".into())
    );
    assert!(matches!(bad(|s| s.lan = s.lan6), SpecError::Family(_)));
    assert!("tcp:x".parse::<Mix>().is_err() && "sctp".parse::<Mix>().is_err());
    assert!("10-9".parse::<Size>().is_err() && "big".parse::<Size>().is_err());
}
