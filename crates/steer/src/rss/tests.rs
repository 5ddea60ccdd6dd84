use super::*;
use crate::nic::{named, names};
use etherparse::PacketBuilder;

const MACS: ([u8; 6], [u8; 6]) = ([2; 6], [4; 6]);

fn tcp(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
        .ipv4(from.0, to.0, 64)
        .tcp(from.1, to.1, 1, 1024);
    builder.write(&mut frame, b"").unwrap();
    frame
}

fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
        .ipv4(from.0, to.0, 64)
        .udp(from.1, to.1);
    builder.write(&mut frame, b"").unwrap();
    frame
}

const CLIENT: ([u8; 4], u16) = ([66, 9, 149, 187], 2794);
const SERVER: ([u8; 4], u16) = ([161, 142, 100, 80], 1766);

#[test]
fn every_device_hashes_the_specifications_packet_as_the_specification_does() {
    for name in names() {
        let rss = Rss::new(&named(name).unwrap(), 4);
        let hashed = rss.hash(&tcp(CLIENT, SERVER));
        assert_eq!(hashed.hash, Some(0x51cc_c178), "{name}");
        assert_eq!(hashed.kind, Kind::Ipv4Tcp);
    }
}

#[test]
fn the_low_bits_index_the_table() {
    let nic = named("82599").unwrap();
    let table: Vec<u32> = (0..128).map(|i| i / 64).collect();
    let rss = Rss::new(&nic, 2).with_table(&nic, &table, 2).unwrap();
    // 0x51ccc178 & 127 = 0x78.
    assert_eq!(rss.queue(&tcp(CLIENT, SERVER)), 1);
    assert_eq!(Rss::new(&nic, 16).queue(&tcp(CLIENT, SERVER)), 0x78 % 16);
}

#[test]
fn what_has_no_rule_is_hashed_as_the_coarser_kind_or_goes_to_the_first_entry() {
    let nic = named("82599").unwrap();
    // Its driver leaves UDP to the addresses unless told otherwise.
    let hashed = Rss::new(&nic, 1).hash(&udp(CLIENT, SERVER));
    assert_eq!((hashed.kind, hashed.hash), (Kind::Ipv4, Some(0x323e_8fc2)));
    let four = [
        Field::SourceAddress,
        Field::DestinationAddress,
        Field::SourcePort,
        Field::DestinationPort,
    ];
    let told = Rss::new(&nic, 1).with_fields(&nic, Kind::Ipv4Udp, &four);
    let hashed = told.unwrap().hash(&udp(CLIENT, SERVER));
    assert_eq!(hashed.hash, Some(0x51cc_c178));

    let arp = [0xff; 60];
    let rss = Rss::new(&nic, 4);
    assert_eq!(rss.hash(&arp).hash, None);
    assert_eq!(rss.queue(&arp), rss.table()[0]);
}

#[test]
fn symmetric_hashing_maps_both_directions_to_one_hash() {
    for name in ["e810", "connectx5", "ena"] {
        let nic = named(name).unwrap();
        let plain = Rss::new(&nic, 1);
        let both = plain.clone().symmetric(&nic).unwrap();
        let (there, back) = (tcp(CLIENT, SERVER), tcp(SERVER, CLIENT));
        assert_ne!(plain.hash(&there).hash, plain.hash(&back).hash, "{name}");
        assert_eq!(both.hash(&there), both.hash(&back), "{name}");
        // Not by forgetting the fields.
        let other = tcp((CLIENT.0, CLIENT.1 + 1), SERVER);
        assert_ne!(both.hash(&there).hash, both.hash(&other).hash, "{name}");
    }
    let nic = named("82599").unwrap();
    assert!(matches!(
        Rss::new(&nic, 1).symmetric(&nic),
        Err(RssError::Symmetry { .. })
    ));
}

#[test]
fn what_the_device_cannot_do_is_refused() {
    let nic = named("82599").unwrap();
    let rss = || Rss::new(&nic, 4);
    assert!(matches!(
        rss().with_key(&nic, &[0; 52]),
        Err(RssError::Key { .. })
    ));
    assert!(matches!(
        rss().with_table(&nic, &[0; 64], 4),
        Err(RssError::Table { .. })
    ));
    assert!(matches!(
        rss().with_table(&nic, &[4; 128], 4),
        Err(RssError::Table { .. })
    ));
    assert!(rss().with_table_size(&nic, usize::MAX, 4).is_err());
    // All four fields of TCP or none, and no SCTP at all.
    let source = [Field::SourceAddress];
    assert!(rss().with_fields(&nic, Kind::Ipv4Tcp, &source).is_err());
    assert!(rss().with_fields(&nic, Kind::Ipv4Sctp, &source).is_err());
    let mellanox = named("connectx5").unwrap();
    assert!(
        Rss::new(&mellanox, 4)
            .with_fields(&mellanox, Kind::Ipv4Tcp, &source)
            .is_ok()
    );
}

#[test]
fn a_choice_of_fields_is_for_every_kind_that_has_them() {
    let addresses = [Field::SourceAddress, Field::DestinationAddress];
    let other_port = tcp((CLIENT.0, 1), SERVER);
    for name in names() {
        let nic = named(name).unwrap();
        let rss = Rss::new(&nic, 4).with_only(&nic, &addresses).unwrap();
        let hash = |frame: &[u8]| rss.hash(frame).hash;
        assert_eq!(hash(&tcp(CLIENT, SERVER)), Some(0x323e_8fc2), "{name}");
        assert_eq!(hash(&tcp(CLIENT, SERVER)), hash(&other_port), "{name}");
        assert_eq!(hash(&tcp(CLIENT, SERVER)), hash(&udp(CLIENT, SERVER)));
    }
    // One address alone only where fields can be chosen.
    let nic = named("82599").unwrap();
    assert!(Rss::new(&nic, 4).with_only(&nic, &addresses[..1]).is_err());
    let nic = named("e810").unwrap();
    let rss = Rss::new(&nic, 4).with_only(&nic, &addresses[..1]).unwrap();
    let other = tcp(CLIENT, ([9; 4], 9));
    assert_eq!(rss.hash(&tcp(CLIENT, SERVER)), rss.hash(&other));
    let ports = [Field::SourcePort, Field::DestinationPort];
    let rss = Rss::new(&nic, 4).with_only(&nic, &ports).unwrap();
    let away = tcp(([9; 4], CLIENT.1), ([8; 4], SERVER.1));
    assert_eq!(rss.hash(&tcp(CLIENT, SERVER)), rss.hash(&away));
    assert!(
        Field::ALL
            .iter()
            .all(|f| Field::named(f.name()) == Some(*f))
    );
}

#[test]
fn the_lookup_is_the_same_function() {
    for name in names() {
        let nic = named(name).unwrap();
        let plain = Rss::new(&nic, 7);
        let symmetric = plain.clone().symmetric(&nic);
        for rss in [Some(plain), symmetric.ok()].into_iter().flatten() {
            let lookup = rss.lookup();
            for i in 0..500_u16 {
                let from = ([10, 0, (i >> 4) as u8, i as u8], 1000 + i);
                let mut frame = if i % 3 == 0 {
                    udp(from, SERVER)
                } else {
                    tcp(from, SERVER)
                };
                if i % 5 == 0 {
                    // A fragment; no port is looked at.
                    frame[20] |= 0x20;
                }
                frame.truncate(if i % 7 == 0 { usize::from(i % 54) } else { 60 });
                assert_eq!(lookup.queue(&frame), rss.queue(&frame), "{name} {i}");
            }
        }
    }
}

#[test]
fn debug_output_shows_no_key_and_no_table() {
    let nic = named("generic").unwrap();
    let key = [0xa7_u8; 40];
    let table: Vec<u32> = (0..128).map(|i| 700 + i % 2).collect();
    let rss = Rss::new(&nic, 702)
        .with_key(&nic, &key)
        .and_then(|r| r.with_table(&nic, &table, 702))
        .unwrap();
    let steering = crate::Steering {
        nic: rss.clone(),
        software: [(Kind::Ipv6Tcp, rss.clone())].into(),
        inside: true,
        echoes: true,
        odd: None,
    };
    // What one bit of a first byte contributes to the hash: the key's first word, which is 32 bits of it.
    let word = crate::toeplitz::hash(&key, &[0x80]).to_string();
    for text in [
        format!("{rss:?} {:?}", rss.lookup()),
        format!("{steering:?} {:?}", steering.owners()),
    ] {
        for secret in ["167", "a7", "700", "701", word.as_str()] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert!(text.contains("Ipv4Tcp"), "{text}");
    }
}
