//! State that goes on: in a newer version of a function, and in the next run. What comes out is what would have come out
//! had nothing been interrupted, byte for byte.

mod next_run;
mod replaced;

use std::path::Path;

use crate::common::live::record;
use crate::common::{self, Packet, capture, read, udp};

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
    common::success(&mut command);
    read(&output)
}
