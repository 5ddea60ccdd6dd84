//! The bundled capture is what its README says, and stays so when it is made again.

use crate::common;

use std::collections::HashSet;
use std::path::Path;

use common::drain;
use millrace_traffic::capture::{Reader, Record};
use millrace_traffic::info::{DEFAULT_FLOW_LIMIT, Describer};
use millrace_traffic::language::describe;
use millrace_traffic::split::{Side, Split};

#[test]
fn the_bundled_capture_has_both_directions_and_strangers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/talk.pcap");
    assert!(path.metadata().unwrap().len() <= 1024 * 1024);
    let (packets, error) = drain(Reader::open(&path).unwrap());
    assert!(error.is_none());

    let split: Split = "lan=10.0.0.0/24,fd00::/8".parse().unwrap();
    let mut describer = Describer::new(DEFAULT_FLOW_LIMIT);
    let (mut lan, mut wan, mut strangers) = (0, 0, 0);
    let mut opened: HashSet<(Vec<u8>, Vec<u8>)> = HashSet::new();
    for packet in &packets {
        describer.add(&Record {
            time_ns: packet.time_ns,
            original_length: packet.original_length,
            interface: 0,
            data: &packet.data,
        });
        let side = split.side(&packet.data);
        lan += u32::from(side == Side::Named);
        wan += u32::from(side == Side::Other);
        // TCP over IPv4 without options: both ends, address and port.
        if packet.data.len() >= 54 && packet.data[12..15] == [8, 0, 0x45] && packet.data[23] == 6 {
            let end = |address: usize, port: usize| {
                [
                    &packet.data[address..address + 4],
                    &packet.data[port..port + 2],
                ]
                .concat()
            };
            let (from, to) = (end(26, 34), end(30, 36));
            match side {
                Side::Named => _ = opened.insert((from, to)),
                Side::Other => strangers += u32::from(!opened.contains(&(to, from))),
            }
        }
    }
    let d = describer.finish();
    assert!((1000..4000).contains(&d.packets), "{d}");
    assert!(
        lan > 300 && wan > 300,
        "{lan} from the LAN, {wan} from the WAN"
    );
    assert!(
        strangers >= 20,
        "{strangers} TCP packets that nobody asked for"
    );
    assert_eq!(d.wrong_checksums, Default::default());
    assert_eq!((d.truncated, d.malformed), (0, 0));
    // Two CPUs that stamp packets differ by little.
    assert!(d.backwards < 20, "{d}");
    assert!(d.ipv6 > 20 && d.fragments >= 4 && d.flows.count > 50, "{d}");
    let names: Vec<_> = d.protocols.iter().map(|share| share.name).collect();
    for protocol in ["tcp", "udp", "icmp", "icmp6", "arp"] {
        assert!(names.contains(&protocol), "no {protocol}");
    }
    let errors = packets.iter().map(|packet| describe(&packet.data));
    assert!(
        errors
            .filter(|text| text.contains("icmp exceeded 0 / ip "))
            .count()
            >= 2
    );
}
