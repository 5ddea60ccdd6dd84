//! State that goes on: in a newer version of a function, and in the next run. What comes out is what would have come out
//! had nothing been interrupted, byte for byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;
use crate::common::live;

use std::io::Write;
use std::path::Path;

use common::{Packet, capture, read, refused, root, udp};
use live::{Live, header, record};

const PUBLIC: [u8; 4] = [192, 0, 2, 1];
const SERVER: ([u8; 4], u16) = ([198, 51, 100, 7], 53);

/// The LAN's end of a connection.
fn lan(n: u32) -> ([u8; 4], u16) {
    ([10, 0, (n >> 8) as u8, n as u8], 4000 + n as u16)
}

/// Connections are opened, ...
fn opened(from: u32, to: u32) -> Vec<Vec<u8>> {
    (from..to).map(|n| udp(lan(n), SERVER)).collect()
}

/// ... and answered at the public ports that they were given, from the last on, and used again.
fn answered(from: u32, to: u32) -> Vec<Vec<u8>> {
    let both = |n: u32| [udp(SERVER, (PUBLIC, 1024 + n as u16)), udp(lan(n), SERVER)];
    (from..to).rev().flat_map(both).collect()
}

/// Packets a millisecond apart, from this one on.
fn timed(packets: Vec<Vec<u8>>, from: u64) -> Vec<Packet> {
    let packets = packets.into_iter().enumerate();
    packets
        .map(|(at, bytes)| (1_000_000_000 + (from + at as u64) * 1_000_000, bytes))
        .collect()
}

/// The two halves of traffic through a NAT: the second lives on what the first left.
fn halves() -> (Vec<Packet>, Vec<Packet>) {
    let first = timed([opened(0, 300), answered(100, 200)].concat(), 0);
    let second = [answered(0, 300), opened(300, 350), answered(300, 350)].concat();
    let second = timed(second, first.len() as u64);
    (first, second)
}

fn bytes(packets: &[Packet]) -> Vec<u8> {
    let each = packets.iter();
    each.flat_map(|(time, packet)| record((time - 1_000_000_000) as u32, packet))
        .collect()
}

/// What a run of these elements makes of these packets, that nothing interrupts.
fn whole(folder: &Path, elements: &[&str], packets: &[Packet]) -> Vec<(u32, u64, Vec<u8>)> {
    let (input, output) = (folder.join("whole.pcap"), folder.join("whole-out.pcap"));
    capture(&input, packets);
    let mut command = common::millrace();
    command
        .arg("run")
        .args(elements)
        .args(["--control", "none"]);
    command.arg("--in").arg(&input).arg("--out").arg(&output);
    command.args(["--split", "lan=10.0.0.0/8"]);
    let (account, status) = common::json(&mut command);
    assert_eq!(status, 0, "{account}");
    read(&output)
}

#[test]
fn a_nat_that_is_replaced_carries_every_connection_on() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = halves();
    let all = [first.clone(), second.clone()].concat();
    let expected = whole(dir.path(), &["nat", "nop"], &all);
    assert_eq!(expected.len(), all.len(), "nothing is dropped");

    let out = dir.path().join("out.pcap");
    let words = [
        "--in",
        "-",
        "--out",
        out.to_str().unwrap(),
        "--split",
        "lan=10.0.0.0/8",
    ];
    let mut live = Live::of(dir.path(), &["nat", "nop"], &words);
    let mut pipe = live.child.stdin.take().unwrap();
    pipe.write_all(&header()).unwrap();
    let mut sent = 0;
    for (number, piece) in [&first[..], &second[..200], &second[200..]]
        .iter()
        .enumerate()
    {
        if number > 0 {
            // Something that cannot be kept is named, and nothing changes.
            let said = refused(
                &mut live.command(&["ctl", "chain", "replace", "nat", "nop"]),
                1,
            );
            for part in ["state cannot be kept", "flows: ", "leases: ", "--anew"] {
                assert!(said.contains(part), "{part}: {said}");
            }
            let done = live.ask(&["ctl", "chain", "replace", "nat", "nat"]);
            let kept = done["kept"].as_array().unwrap();
            let of = |name: &str| {
                let object = kept.iter().find(|k| k["object"] == name);
                object.unwrap_or_else(|| panic!("{name}: {done}"))["entries"].as_u64()
            };
            assert_eq!(
                (of("flows"), of("leases")),
                (Some(300), Some(300)),
                "{done}"
            );
        }
        pipe.write_all(&bytes(piece)).unwrap();
        sent += piece.len() as u64;
        live.until(|stats| stats["read"].as_u64() == Some(sent));
    }
    drop(pipe);
    let (account, status) = live.end();
    assert_eq!((status, &account["dropped"]), (0, &0.into()), "{account}");
    assert!(
        read(&out) == expected,
        "other packets than without a replacement"
    );
}

#[test]
fn a_replacement_keeps_all_of_the_state_or_none() {
    let dir = tempfile::tempdir().unwrap();
    // The same translation, whose leases have another first number.
    let text = std::fs::read_to_string(root().join("nfs/nat/nat.c")).unwrap();
    let other = dir.path().join("other.c");
    std::fs::write(
        &other,
        text.replace("#define FIRST_PORT 1024", "#define FIRST_PORT 2048"),
    )
    .unwrap();
    let other = other.to_str().unwrap();
    let words = ["--in", "-", "--split", "lan=10.0.0.0/8"];
    let mut live = Live::of(dir.path(), &["nat", "nop"], &words);
    let mut pipe = live.child.stdin.take().unwrap();
    let (first, _) = halves();
    pipe.write_all(&header()).unwrap();
    pipe.write_all(&bytes(&first)).unwrap();
    live.until(|stats| stats["read"].as_u64() == Some(first.len() as u64));
    let said = refused(
        &mut live.command(&["ctl", "chain", "replace", "nat", other]),
        1,
    );
    assert!(
        said.contains("leases: ") && said.contains("flows: "),
        "{said}"
    );
    let done = live.ask(&["ctl", "chain", "replace", "nat", other, "--anew"]);
    assert_eq!(done["kept"], serde_json::json!([]), "{done}");
    let entries = live.ask(&["map", "show", "nat:flows"])["entries"].as_u64();
    assert_eq!(entries, Some(0));
    drop(pipe);
    assert_eq!(live.end().1, 0);
}
