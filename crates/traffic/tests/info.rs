//! Descriptions of captures.

use crate::common;

use common::corpora;
use millrace_traffic::capture::{Reader, Record};
use millrace_traffic::generate::{Generator, Spec};
use millrace_traffic::info::{DEFAULT_FLOW_LIMIT, Describer, Description};
use millrace_traffic::language::packet;

fn describe(packets: &[(u64, &str)]) -> Description {
    let mut describer = Describer::new(DEFAULT_FLOW_LIMIT);
    for (time_ns, text) in packets {
        let data = packet(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let original_length = data.len() as u32;
        describer.add(&Record {
            time_ns: *time_ns,
            original_length,
            interface: 0,
            data: &data,
        });
    }
    describer.finish()
}

#[test]
fn both_directions_are_one_flow() {
    let flows = |texts: &[&str]| {
        let packets: Vec<_> = texts.iter().map(|text| (0, *text)).collect();
        describe(&packets).flows.count
    };
    assert_eq!(
        flows(&[
            "eth / ip 10.0.0.1 > 10.0.0.2 / tcp 5 > 80",
            "eth / vlan 3 / ip 10.0.0.2 > 10.0.0.1 / tcp 80 > 5",
            "eth / ip 10.0.0.2 > 10.0.0.1 / udp 80 > 5",
            "eth / ip 10.0.0.2 > 10.0.0.1 / tcp 5 > 80",
        ]),
        3
    );
    assert_eq!(
        flows(&[
            "eth / ip 10.0.0.1 > 10.0.0.2 / icmp echo 7 1",
            "eth / ip 10.0.0.2 > 10.0.0.1 / icmp reply 7 1",
            "eth / ip6 ::1 > ::2 / icmp6 echo 7 1",
            "eth / ip6 ::2 > ::1 / icmp6 reply 7 1",
            "eth / arp who-has 10.0.0.1 tell 10.0.0.2",
        ]),
        2
    );
}

#[test]
fn wrong_checksums_and_odd_packets_are_counted() {
    let description = describe(&[
        (
            0,
            "eth / ip 10.0.0.1 > 10.0.0.2 checksum 1 / tcp 1 > 2 checksum 1",
        ),
        (1, "eth / ip6 ::1 > ::2 / udp 1 > 2 checksum 1"),
        (2, "eth / ip 10.0.0.1 > 10.0.0.2 / udp 1 > 2 checksum 0"),
        (3, "eth / ip 10.0.0.1 > 10.0.0.2 / icmp echo 1 1 checksum 1"),
        (4, "eth / ip6 ::1 > ::2 / icmp6 echo 1 1 checksum 1"),
        (
            5,
            "eth / ip 10.0.0.1 > 10.0.0.2 / udp 1 > 2 / trailer zeros 18",
        ),
        (
            6,
            "eth / vlan 1 / ip 10.0.0.1 > 10.0.0.2 more / udp 1 > 2 checksum 7 / payload zeros 16",
        ),
        (
            7,
            "eth / ip6 ::1 > ::2 / frag6 offset 8 next 17 / payload zeros 8",
        ),
        (8, "eth / ip 10.0.0.1 > 10.0.0.2 ihl 2 / udp 1 > 2"),
        (9, "eth / ip 10.0.0.1 > 10.0.0.2 / tcp 1 > 2 / cut 40"),
        (3, "raw 0102"),
    ]);
    let wrong = description.wrong_checksums;
    assert_eq!((wrong.ipv4, wrong.tcp, wrong.udp, wrong.icmp), (1, 1, 1, 2));
    assert_eq!(description.vlan, 1);
    assert_eq!(description.fragments, 2);
    assert_eq!(description.malformed, 3);
    assert_eq!(description.backwards, 1);
    assert_eq!(description.packets, 11);
}

#[test]
fn no_packets_are_described_too() {
    let description = describe(&[]);
    assert_eq!((description.packets, description.seconds), (0, 0.0));
    assert!(
        description
            .to_string()
            .starts_with("packets      0, 0 bytes\n")
    );
    assert!(describe(&[(5, "eth")]).packets_per_second == 0.0);
}

#[test]
fn the_flow_table_is_bounded() {
    let mut describer = Describer::new(2);
    for text in ["1 > 2", "3 > 4", "5 > 6", "1 > 2"] {
        let data = packet(&format!("eth / ip 10.0.0.1 > 10.0.0.2 / udp {text}")).unwrap();
        describer.add(&Record {
            time_ns: 0,
            original_length: 42,
            interface: 0,
            data: &data,
        });
    }
    let flows = describer.finish().flows;
    assert_eq!((flows.count, flows.exceeded, flows.packets), (2, true, 3));
}

#[test]
fn made_traffic_is_described_as_it_was_specified() {
    let spec = Spec {
        packets: 50_000,
        flows: 500,
        ipv6: 0.5,
        rate: 10_000.0,
        ..Spec::default()
    };
    let mut generator = Generator::new(spec).unwrap();
    let mut describer = Describer::new(DEFAULT_FLOW_LIMIT);
    while let Some(record) = generator.next() {
        describer.add(&record);
    }
    let description = describer.finish();
    assert_eq!(description.packets, 50_000);
    assert_eq!(description.wrong_checksums, Default::default());
    assert_eq!(
        description.malformed + description.truncated + description.backwards,
        0
    );
    assert!((450..=500).contains(&description.flows.count));
    assert!((0.12..0.25).contains(&description.flows.largest_share));
    assert!((9_999.0..10_001.0).contains(&description.packets_per_second));
    assert_eq!(description.bursts.most_in_a_millisecond, 10);
    insta::assert_snapshot!(description);
}

#[test]
fn the_corpora_have_what_their_index_says() {
    let Some(folder) = corpora() else { return };
    let index = std::fs::read_to_string(folder.join("index.csv")).unwrap();
    for line in index.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        let mut reader = Reader::open(folder.join(fields[0])).unwrap();
        let mut describer = Describer::new(DEFAULT_FLOW_LIMIT);
        while let Some(record) = reader.next().unwrap() {
            describer.add(&record);
        }
        let d = describer.finish();
        // The index counts packets with one tag; twenty here have two, as tshark finds too.
        let vlan = if fields[0] == "pcapplusplus-example2.pcap" {
            24
        } else {
            number(8)
        };
        assert_eq!(
            (d.packets, d.flows.count, d.ipv6, d.vlan, d.fragments),
            (number(4), number(5), number(7), vlan, number(9)),
            "{}",
            fields[0]
        );
        // The corpora's README counts these.
        if fields[0] == "pcapplusplus-tls2.pcap" {
            assert_eq!(d.wrong_checksums.ipv4, 1470);
        }
    }
}
