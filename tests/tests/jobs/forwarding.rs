//! xdp-forward of xdp-tools: a router. What leaves by which port, and with which bytes, is worked out here
//! from the capture and the rules of the table below, one by one.

use std::collections::BTreeMap;

use millrace_tests::command::{json, millrace};

use super::{find, frames, talk};

/// The LAN, the rest of the world, and a link to the name server that is longer a prefix than the rest.
/// The third host of the LAN has not been heard of; one network is closed.
const ROUTES: &str = r#"{
  "ports": [
    {"ifname": "lan", "address": "02:00:00:00:10:01", "addresses": ["10.0.0.1/24", "fd00:1::1/64"]},
    {"ifname": "wan", "address": "02:00:00:00:10:02", "addresses": ["192.0.2.1/30", "2001:db8:1::1/64"], "mtu": 1400},
    {"ifname": "dns", "address": "02:00:00:00:10:03", "addresses": ["198.51.100.1/30"]}
  ],
  "routes": [
    {"dst": "default", "gateway": "192.0.2.2", "dev": "wan"},
    {"dst": "192.0.2.152/29", "gateway": "198.51.100.2", "dev": "dns"},
    {"dst": "192.0.2.192/26", "type": "prohibit"}
  ],
  "routes6": [
    {"dst": "2001:db8:2::/64", "gateway": "2001:db8:1::2", "dev": "wan"}
  ],
  "neighbours": [
    {"dst": "10.0.0.2", "lladdr": "02:00:00:00:20:02", "dev": "lan"},
    {"dst": "10.0.0.3", "lladdr": "02:00:00:00:20:03", "dev": "lan"},
    {"dst": "fd00:1::2", "lladdr": "02:00:00:00:20:06", "dev": "lan"},
    {"dst": "192.0.2.2", "lladdr": "02:00:00:00:20:12", "dev": "wan"},
    {"dst": "2001:db8:1::2", "lladdr": "02:00:00:00:20:16", "dev": "wan"},
    {"dst": "198.51.100.2", "lladdr": "02:00:00:00:20:22", "dev": "dns"}
  ]
}"#;

const PORTS: [&str; 3] = ["lan", "wan", "dns"];
const WAN: u8 = 1;
const WAN_MTU: u16 = 1400;

/// Where a destination is reached: the port, and the last byte of the next hop's MAC address; or why a
/// router would not.
fn next_hop(frame: &[u8]) -> Result<(u8, u8), &'static str> {
    if frame[12..14] == [8, 0] {
        return match frame[30..34] {
            [10, 0, 0, host @ (2 | 3)] => Ok((0, host)),
            [10, 0, 0, _] => Err("no neighbour"),
            [192, 0, 2, 152..=159] => Ok((2, 0x22)),
            [192, 0, 2, 192..=255] => Err("prohibited"),
            [192, 0, 2, 0..=3] => Err("of the link itself"),
            _ => Ok((WAN, 0x12)),
        };
    }
    match frame[38..46] {
        [0xfd, 0, 0, 1, 0, 0, 0, 0] => Ok((0, 6)),
        [0x20, 1, 0xd, 0xb8, 0, 2, 0, 0] => Ok((WAN, 0x16)),
        _ => Err("no route"),
    }
}

/// The checksum of an IPv4 header (RFC 1071), computed from nothing.
fn checksum(header: &[u8]) -> [u8; 2] {
    let words = header
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// What a router makes of a frame: the port and the new frame, or why it is left to the host.
fn forwarded(frame: &[u8]) -> Result<(u8, Vec<u8>), &'static str> {
    // The hop count, and the length as the program takes it: without the header in IPv6.
    let (hops, length) = match frame[12..14] {
        [8, 0] => (22, 16),
        [0x86, 0xdd] => (21, 18),
        _ => return Err("not IP"),
    };
    if frame[hops] <= 1 {
        return Err("at the end of its hops");
    }
    let (port, neighbour) = next_hop(frame)?;
    if port == WAN && u16::from_be_bytes([frame[length], frame[length + 1]]) > WAN_MTU {
        return Err("too long");
    }
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0x20, neighbour]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0x10, port + 1]);
    frame[hops] -= 1;
    if frame[12..14] == [8, 0] {
        let end = 14 + 4 * usize::from(frame[14] & 15);
        frame[24..26].fill(0);
        let sum = checksum(&frame[14..end]);
        frame[24..26].copy_from_slice(&sum);
    }
    Ok((port, frame))
}

#[test]
fn xdp_forward_routes() {
    let Some(object) = find("xdp-forward-xdp_forward.o") else {
        return;
    };
    let (mut sent, mut passed, mut reasons) =
        (vec![Vec::new(); 3], Vec::new(), BTreeMap::<_, u32>::new());
    for frame in frames(&talk()) {
        match forwarded(&frame) {
            Ok((port, frame)) => sent[usize::from(port)].push(frame),
            Err(why) => {
                passed.push(frame);
                *reasons.entry(why).or_default() += 1;
            }
        }
    }
    let ends = ["no neighbour", "prohibited", "at the end of its hops"];
    let shown = ends
        .iter()
        .chain(&["no route", "not IP", "too long"])
        .all(|why| reasons.contains_key(why));
    assert!(
        shown && sent.iter().all(|frames| frames.len() >= 10),
        "shows too little: {reasons:?}"
    );

    for program in ["xdp_fwd_fib_full", "xdp_fwd_fib_direct"] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("routes.json"), ROUTES).unwrap();
        std::fs::write(at("tx.csv"), "1,1\n2,2\n3,3\n").unwrap();
        let mut command = millrace();
        command
            .arg("run")
            .arg(&object)
            .args(["--program", program, "--json"]);
        command.arg("--in").arg(talk());
        command.args(["--split", "lan=10.0.0.0/24,fd00:1::/64"]);
        for port in PORTS {
            command.arg("--out").arg(at(port).with_extension("pcap"));
        }
        command.arg("--pass").arg(at("passed.pcap"));
        command.arg("--routes").arg(at("routes.json"));
        command
            .arg("--map")
            .arg(format!("xdp_tx_ports={}", at("tx.csv").display()));
        let (account, code) = json(&mut command);
        assert_eq!(code, 0, "{program}: {account}");
        assert_eq!(account["passed"], passed.len(), "{program}: {account}");
        for (port, expected) in PORTS.iter().zip(&sent) {
            let got = frames(&at(port).with_extension("pcap"));
            assert_eq!(got.len(), expected.len(), "{program}: {port}");
            assert!(got == *expected, "{program}: other packets leave by {port}");
        }
        assert!(
            frames(&at("passed.pcap")) == passed,
            "{program}: other packets are passed"
        );
        let counts: Vec<_> = sent.iter().map(Vec::len).collect();
        println!("{program}: {counts:?} packets by {PORTS:?}, {reasons:?} passed");
    }
}
