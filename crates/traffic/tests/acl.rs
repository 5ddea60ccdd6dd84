//! Access control lists, and packets that match them.

use std::collections::BTreeSet;

use millrace_classify::{Key, Rules};
use millrace_traffic::generate::{Acl, AclShape, Matched};

fn list(shape: AclShape, rules: u32, classes: u32, seed: u64) -> String {
    Acl {
        shape,
        rules,
        classes,
        seed,
    }
    .text()
}

fn read(text: &str, classes: u32) -> Rules {
    Rules::read(text.as_bytes(), &Key::flow4(), classes, 1 << 16)
        .unwrap()
        .rules
}

#[test]
fn lists_have_as_many_rules_as_asked_for_and_none_twice() {
    for shape in [AclShape::Acl, AclShape::Fw, AclShape::Ipc] {
        for count in [1, 2, 251, 1500] {
            let text = list(shape, count, 3, 7);
            let rules = read(&text, 4);
            assert_eq!(rules.len(), count as usize, "{shape:?}");
            let distinct: BTreeSet<_> = rules.iter().map(|r| r.ranges.to_vec()).collect();
            assert_eq!(distinct.len(), count as usize, "{shape:?}");
            let classes: BTreeSet<_> = rules.iter().map(|r| r.class).collect();
            assert!(classes.iter().all(|c| (1..=3).contains(c)));
            assert!(count < 50 || classes.len() == 3);
        }
        assert_eq!(list(shape, 300, 2, 1), list(shape, 300, 2, 1));
        assert_ne!(list(shape, 300, 2, 1), list(shape, 300, 2, 2));
    }
}

/// The key of a frame, read from its bytes.
fn key(frame: &[u8]) -> [u32; 5] {
    let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
    let half = |at: usize| u32::from(u16::from_be_bytes(frame[at..at + 2].try_into().unwrap()));
    let protocol = u32::from(frame[23]);
    let ports = protocol == 6 || protocol == 17;
    let port = |at| if ports { half(at) } else { 0 };
    [word(26), word(30), port(34), port(36), protocol]
}

#[test]
fn packets_meet_each_rule_alike_and_every_class() {
    for (shape, count) in [
        (AclShape::Acl, 713),
        (AclShape::Fw, 300),
        (AclShape::Ipc, 300),
    ] {
        let rules = read(&list(shape, count, 5, 3), 6);
        let mut packets = Matched::new(rules.clone(), 1, 60, 0, 1000);
        let (met, classes) = packets.met();
        assert!(met * 10 > count as usize * 8, "{shape:?}: {met} of {count}");
        let classes: BTreeSet<_> = classes.iter().copied().collect();
        // A list may leave no key of a packet in no rule.
        assert!(classes.is_superset(&(1..6).collect()), "{shape:?}");
        let none = usize::from(classes.contains(&0));
        let first = |key: &[u32]| rules.iter().position(|r| r.contains(key));
        let mut hits = std::collections::BTreeMap::<Option<usize>, u32>::new();
        for n in 0..2 * (met + none) as u64 {
            let record = packets.next().unwrap();
            assert_eq!((record.time_ns, record.data.len()), (n * 1000, 60));
            *hits.entry(first(&key(record.data))).or_default() += 1;
        }
        assert_eq!(hits.len(), met + none);
        assert!(hits.values().all(|n| *n == 2), "{shape:?}");
    }
}

#[test]
fn a_class_that_one_rare_rule_has_is_met() {
    // Only one address of class 2 is left by the rule before it, and chance does not find it.
    let text = "src 0.0.0.0-10.0.0.6 class 1\nsrc 10.0.0.8-255.255.255.255 class 1\nprotocol 6-17 class 2\n";
    let mut packets = Matched::new(read(text, 3), 1, 60, 0, 1);
    let classes: BTreeSet<_> = (0..8).map(|_| key(packets.next().unwrap().data)).collect();
    assert!(classes.iter().any(|k| k[0] == 0x0a00_0007), "{classes:?}");
}

#[test]
fn checksums_of_matched_packets_hold() {
    let rules = read("protocol 6\nprotocol 17\nprotocol 1\nprotocol 47\n", 2);
    let mut packets = Matched::new(rules, 1, 64, 0, 1);
    for _ in 0..5 {
        let frame = packets.next().unwrap().data.to_vec();
        let headers = etherparse::PacketHeaders::from_ethernet_slice(&frame).unwrap();
        let Some(etherparse::NetHeaders::Ipv4(ip, _)) = headers.net else {
            panic!("no IPv4")
        };
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let payload = headers.payload.slice();
        match headers.transport {
            Some(etherparse::TransportHeader::Tcp(t)) => {
                assert_eq!(t.checksum, t.calc_checksum_ipv4(&ip, payload).unwrap());
            }
            Some(etherparse::TransportHeader::Udp(u)) => {
                assert_eq!(u.checksum, u.calc_checksum_ipv4(&ip, payload).unwrap());
            }
            Some(etherparse::TransportHeader::Icmpv4(i)) => {
                assert_eq!(i.checksum, i.icmp_type.calc_checksum(payload));
            }
            _ => assert!(![1, 6, 17].contains(&frame[23]), "{}", frame[23]),
        }
    }
}
