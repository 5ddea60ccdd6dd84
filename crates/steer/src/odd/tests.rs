use proptest::prelude::*;

use super::*;
use crate::fields::parse;
use crate::nic::named;
use crate::{Field, Rss, Steering};
use std::collections::BTreeMap;

const PORTS: [Ports; 2] = [Ports::Fixed, Ports::Behind];

/// An Ethernet frame of IPv4 with this first byte and protocol, and these addresses and ports right behind 20 bytes.
fn frame(first: u8, protocol: u8, fields: [u8; 12], tags: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0, 0, 7]);
    }
    frame.extend([8, 0]);
    frame.extend([first, 0, 0, 60, 0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend(fields);
    frame.extend([0; 60]);
    frame
}

/// Software hashes these fields of odd packets of TCP, the NIC of others.
fn steering(odd: Odd, fields: &[Field]) -> Steering {
    let nic = named("software").unwrap();
    let only = Rss::new(&nic, 16).with_only(&nic, fields).unwrap();
    Steering {
        nic: only.clone(),
        software: BTreeMap::from([(Kind::Ipv4OddTcp, only)]),
        inside: false,
        echoes: false,
        odd: Some(odd),
    }
}

#[test]
fn what_a_nic_reads_as_the_program_does_is_not_odd() {
    let tcp = frame(0x45, 6, [9; 12], 0);
    for ports in PORTS {
        for every in [false, true] {
            assert_eq!(Odd { ports, every }.read(&tcp, &parse(&tcp)), None);
        }
    }
    let mut arp = tcp;
    arp[12..14].copy_from_slice(&[8, 6]);
    let every = Odd {
        ports: Ports::Fixed,
        every: true,
    };
    assert_eq!(every.read(&arp, &parse(&arp)), None);
}

#[test]
fn options_are_odd_where_ports_are_taken_from_a_fixed_place() {
    let options = frame(0x46, 6, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4], 1);
    let read = |ports, every| Odd { ports, every }.read(&options, &parse(&options));
    let odd = read(Ports::Fixed, true).unwrap();
    assert_eq!(odd.kind, Kind::Ipv4OddTcp);
    assert_eq!(odd.field(Field::SourcePort), [3, 3]);
    assert_eq!(read(Ports::Fixed, false), None);
    assert_eq!(read(Ports::Behind, true), None);
}

#[test]
fn of_a_header_that_says_less_than_it_has_the_ports_are_inside_of_it() {
    let short = frame(0x43, 17, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4], 0);
    let behind = Odd {
        ports: Ports::Behind,
        every: false,
    };
    let odd = behind.read(&short, &parse(&short)).unwrap();
    assert_eq!(odd.kind, Kind::Ipv4OddUdp);
    assert_eq!(odd.field(Field::SourceAddress), [1; 4]);
    assert_eq!(odd.field(Field::SourcePort), [1, 1]);
}

#[test]
fn extension_headers_are_odd_where_every_packet_is_read() {
    let mut frame = vec![2; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 60, 60, 64]);
    frame.extend([7; 32]);
    frame.extend([6, 0, 1, 4, 0, 0, 0, 0, 0, 80, 0, 90, 0, 0, 0, 0]);
    let own = parse(&frame);
    assert_eq!(own.kind, Kind::Ipv6Tcp);
    let odd = |every| {
        let ports = Ports::Fixed;
        Odd { ports, every }.read(&frame, &own)
    };
    assert_eq!(odd(false), None);
    assert_eq!(odd(true).unwrap().kind, Kind::Ipv6Odd);
    assert_eq!(odd(true).unwrap().field(Field::SourcePort), [6, 0]);
}

proptest! {
    /// A packet with these bytes in its fields meets the one that has the same bytes where a NIC looks for them.
    #[test]
    fn odd_packets_meet_whole_ones_with_the_same_bytes(
        first: u8, fragment: u16, fields: [u8; 12], others: [u8; 12], which in 0_usize..3, tags in 0_usize..3,
    ) {
        let all = [
            &[Field::SourceAddress][..],
            &[Field::DestinationAddress],
            &Field::ALL,
        ];
        let odd = Odd { ports: Ports::Fixed, every: true };
        let steering = steering(odd, all[which]);
        let owners = steering.owners();
        let whole = frame(0x45, 6, fields, 0);
        let mut same = frame(first, 6, others, tags);
        let at = 14 + 4 * tags;
        same[at + 6..at + 8].copy_from_slice(&fragment.to_be_bytes());
        let key = [at + 12..at + 16, at + 16..at + 20, at + 12..at + 24][which].clone();
        let own = key.start - at - 12..key.end - at - 12;
        same[key].copy_from_slice(&fields[own]);
        prop_assert_eq!(owners.owner(&same), owners.owner(&whole));
        prop_assert_eq!(owners.index(&same), owners.index(&whole));
        prop_assert_eq!(owners.owner(&same), steering.queue(&same));
        // Who is told of what the NIC did elsewhere is told the same.
        prop_assert_eq!(owners.exception(&whole), None);
        let told = owners.exception(&same).unwrap_or_else(|| steering.nic.queue(&same));
        prop_assert_eq!(told, owners.owner(&same));
    }

    #[test]
    fn nothing_makes_it_panic(cut in 0_usize..90, mut frame in proptest::collection::vec(0_u8.., 90), six: bool) {
        frame[12..14].copy_from_slice(if six { &[0x86, 0xdd] } else { &[8, 0] });
        for ports in PORTS {
            for every in [false, true] {
                let frame = &frame[..cut];
                let _ = Odd { ports, every }.read(frame, &parse(frame));
            }
        }
    }
}
