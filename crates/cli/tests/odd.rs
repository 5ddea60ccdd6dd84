//! `millrace verify` of all bundled functions on traffic that is not well-behaved: datagrams without a checksum, strangers
//! who probe public ports, packets that are cut short, malformed, in fragments, in tags, or errors about others.

use crate::common;

use std::path::{Path, PathBuf};

use common::{json, millrace, root};
use millrace_traffic::capture::Writer;
use millrace_traffic::language::packet;
use millrace_turns::of_today;

/// Numbers that look like chance and are the same each time (Knuth, The Art of Computer Programming 2, 3.3.4).
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A frame and the port where it comes in.
type Frame = (usize, Vec<u8>);

/// Two captures, one a port, in which `rate` frames come a second.
fn captures(folder: &Path, frames: &[Frame], rate: u64) -> String {
    let paths: Vec<PathBuf> = (0..2)
        .map(|port| folder.join(format!("{port}.pcap")))
        .collect();
    let mut writers: Vec<Writer> = paths
        .iter()
        .map(|p| Writer::create(p, &["a"]).unwrap())
        .collect();
    for (number, (port, bytes)) in (0..).zip(frames) {
        let time = 1_700_000_000_000_000_000 + number * 1_000_000_000 / rate;
        writers[*port]
            .write(time, 0, bytes.len() as u32, bytes)
            .unwrap();
    }
    for writer in writers {
        writer.finish().unwrap();
    }
    let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(",")
}

fn made(text: &str) -> Vec<u8> {
    packet(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Where the header behind Ethernet begins.
const IP: usize = 14;

/// A flow's packet from the LAN, and what answers it.
fn flow(chance: &mut Chance) -> (Vec<u8>, Vec<u8>) {
    let host = format!("10.0.0.{}", 1 + chance.below(24));
    let server = format!("198.51.100.{}", 1 + chance.below(8));
    let (own, other) = (2000 + chance.below(6), 50 + chance.below(4));
    let (out, back) = match chance.below(6) {
        0 => (
            format!("icmp echo {own} 1 / payload \"ping\""),
            format!("icmp reply {own} 1 / payload \"ping\""),
        ),
        1 | 2 => (
            format!("tcp {own} > {other} syn"),
            format!("tcp {other} > {own} syn ack"),
        ),
        _ => (
            format!("udp {own} > {other} / payload \"abc\""),
            format!("udp {other} > {own} / payload \"abcd\""),
        ),
    };
    let mut frames = [
        made(&format!("eth / ip {host} > {server} / {out}")),
        made(&format!("eth / ip {server} > {host} / {back}")),
    ];
    // RFC 768: zero says that there is no checksum.
    if chance.below(2) == 0 {
        for frame in frames.iter_mut().filter(|f| f[IP + 9] == 17) {
            frame[IP + 26..IP + 28].fill(0);
        }
    }
    let [out, back] = frames;
    (out, back)
}

/// The header checksum of IPv4, anew.
fn sealed(mut frame: Vec<u8>) -> Vec<u8> {
    let length = usize::from(frame[IP] & 15) * 4;
    if length < 20 || frame.len() < IP + length {
        return frame;
    }
    frame[IP + 10..IP + 12].fill(0);
    let words = frame[IP..IP + length].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Something wrong with a packet, or rare about it.
fn odd(chance: &mut Chance, mut frame: Vec<u8>) -> Vec<u8> {
    match chance.below(14) {
        0 => frame.truncate(chance.below(frame.len() as u64) as usize + 1),
        // No header is that short; five words are the least.
        1 => frame[IP] = 0x40 | chance.below(5) as u8,
        2 => frame[IP] = 0x50 | (frame[IP] & 15),
        3 => frame[IP] = 0x4f,
        // Options: a word that does nothing.
        4 => {
            frame[IP] = 0x46;
            frame.splice(IP + 20..IP + 20, [1, 1, 1, 0]);
            let length = (frame.len() - IP) as u16;
            frame[IP + 2..IP + 4].copy_from_slice(&length.to_be_bytes());
            frame = sealed(frame);
        }
        // A first fragment, and one behind it.
        5 => {
            frame[IP + 6] = 0x20;
            frame = sealed(frame);
        }
        6 => {
            frame[IP + 7] = 3;
            frame = sealed(frame);
        }
        7 => frame
            .splice(12..12, [0x81, 0x00, 0x00, 0x07])
            .for_each(drop),
        8 => frame
            .splice(12..12, [0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x08])
            .for_each(drop),
        // Longer than its packet, and much longer.
        9 => frame.resize(frame.len() + 7, 0xee),
        10 => frame.resize(9018, 0),
        11 => frame[IP + 9] = [2, 47, 50, 132, 136][chance.below(5) as usize],
        12 => frame[IP + 8] = chance.below(3) as u8,
        _ => frame[12] = 0x99,
    }
    frame
}

/// IPv6: without a checksum, and behind extension headers.
fn six(chance: &mut Chance, lan: bool) -> Vec<u8> {
    let (host, server) = (1 + chance.below(20), 1 + chance.below(6));
    let (own, other) = (2000 + chance.below(4), 53);
    let mut frame = match lan {
        true => made(&format!(
            "eth / ip6 fd00::{host} > 2001:db8::{server} / udp {own} > {other} / payload \"abc\""
        )),
        false => made(&format!(
            "eth / ip6 2001:db8::{server} > fd00::{host} / udp {other} > {own} / payload \"abc\""
        )),
    };
    match chance.below(4) {
        0 => frame[IP + 46..IP + 48].fill(0),
        // Hop-by-hop or destination options of eight bytes, or a fragment header.
        n @ 1..=2 => {
            let kind = [0, 60, 44][chance.below(3) as usize];
            let options = match kind {
                44 => [17, 0, 0, n as u8 - 1, 0, 0, 0, 9],
                _ => [17, 0, 1, 4, 0, 0, 0, 0],
            };
            frame[IP + 6] = kind;
            frame.splice(IP + 40..IP + 40, options);
            let length = (frame.len() - IP - 40) as u16;
            frame[IP + 4..IP + 6].copy_from_slice(&length.to_be_bytes());
        }
        _ => {}
    }
    if chance.below(8) == 0 {
        frame.truncate(IP + chance.below(60) as usize);
    }
    frame
}

/// From outside to a public port: of no flow, or of one by chance; and errors about what came from there.
fn probe(chance: &mut Chance, port: u64) -> Vec<u8> {
    let stranger = match chance.below(2) {
        // A server that hosts do talk to, from the port that they talk to.
        0 => format!("198.51.100.{}", 1 + chance.below(8)),
        _ => format!("203.0.113.{}", 1 + chance.below(200)),
    };
    let from = 50 + chance.below(4);
    let mut frame = made(&match chance.below(8) {
        0 | 1 => format!("eth / ip {stranger} > 192.0.2.1 / tcp {from} > {port} syn"),
        2 => format!("eth / ip {stranger} > 192.0.2.1 / icmp reply {port} 1"),
        3 => format!("eth / ip {stranger} > 192.0.2.1 / icmp echo {port} 1"),
        4 => format!(
            "eth / ip 203.0.113.9 > 192.0.2.1 / icmp unreachable 3 / ip 192.0.2.1 > {stranger} / udp {port} > {from} / payload \"abc\""
        ),
        5 => format!(
            "eth / ip 203.0.113.9 > 192.0.2.1 / icmp unreachable 3 / ip 192.0.2.1 > {stranger} / tcp {port} > {from}"
        ),
        _ => format!("eth / ip {stranger} > 192.0.2.1 / udp {from} > {port} / payload \"abc\""),
    });
    if frame[IP + 9] == 17 && chance.below(2) == 0 {
        frame[IP + 26..IP + 28].fill(0);
    }
    frame
}

/// All kinds of it; `probes` of eight packets of the WAN go to public ports.
fn traffic(frames: usize, probes: u64, seed: u64) -> Vec<Frame> {
    let mut chance = Chance(seed);
    let mut port = 1024;
    let mut out: Vec<Frame> = Vec::new();
    while out.len() < frames {
        let (ask, answer) = flow(&mut chance);
        match chance.below(10) {
            0 => {
                let lan = chance.below(2) == 0;
                out.push((usize::from(!lan), six(&mut chance, lan)));
            }
            1 => {
                let frame = odd(&mut chance, ask);
                out.push((0, frame));
            }
            2 => {
                let frame = odd(&mut chance, answer);
                out.push((1, frame));
            }
            _ => {
                out.push((0, ask));
                if chance.below(2) == 0 {
                    out.push((1, answer));
                }
            }
        }
        if chance.below(8) < probes {
            // In order from the first, where numbers are leased first, and anywhere.
            let any = 1024 + chance.below(64_512);
            port = if port == 65_535 { 1024 } else { port + 1 };
            let to = if chance.below(2) == 0 { any } else { port };
            let frame = probe(&mut chance, to);
            out.push((1, frame));
        }
    }
    out
}

fn verified(name: &str, inputs: &str, more: &[&str]) -> (serde_json::Value, i32) {
    let mut command = millrace();
    json(
        command
            .args(["verify", name, "--in", inputs, "--cores", "2,4"])
            .args(more),
    )
}

#[test]
fn all_bundled_functions_are_equal_on_odd_packets() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = captures(folder.path(), &traffic(4_000, 2, 1), 100);
    let mut names: Vec<String> = std::fs::read_dir(root().join("nfs"))
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.path().is_dir())
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 16);
    let mut wrong = Vec::new();
    for name in of_today("functions on odd packets", &names, 5) {
        let (found, status) = verified(name, &inputs, &[]);
        if status != 0 || found["equal"] != true {
            wrong.push(format!("{name}: {:#}", found["differences"][0]));
        }
        assert_eq!(found["runs"].as_array().unwrap().len(), 2, "{name}");
        for run in found["runs"].as_array().unwrap() {
            println!(
                "{name} on {}: {} {:?}",
                run["cores"], run["strategy"], run["relaxations"]
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same under the lock, which decides about order itself: the run's steering brings to one worker what it reads alike,
/// and tags, options and fragments make it read two packets of one connection otherwise.
#[test]
fn functions_that_rewrite_are_equal_on_odd_packets_under_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = captures(folder.path(), &traffic(4_000, 2, 1), 100);
    for name in of_today(
        "functions that rewrite, under the lock",
        ["nat", "einat"],
        2,
    ) {
        let (found, status) = verified(name, &inputs, &["--strategy", "lock"]);
        assert_eq!(
            (status, &found["equal"]),
            (0, &true.into()),
            "{name}: {:#}",
            found["differences"][0]
        );
        for run in found["runs"].as_array().unwrap() {
            assert_eq!(run["strategy"], "lock", "{name}");
            assert!(run["writers"].as_u64() > Some(100), "{name}: {run}");
        }
    }
}

/// Which number was leased is open, and so is whose a stranger's packet reaches; that it reaches the same flow's on both
/// sides is not.
#[test]
fn strangers_who_probe_public_ports_find_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = captures(folder.path(), &traffic(12_000, 8, 2), 400);
    for name in ["nat", "einat"] {
        let (found, status) = verified(name, &inputs, &[]);
        assert_eq!(
            (status, &found["equal"]),
            (0, &true.into()),
            "{name}: {:#}",
            found["differences"][0]
        );
        for run in found["runs"].as_array().unwrap() {
            let lease = run["relaxations"]
                .as_array()
                .unwrap()
                .iter()
                .find(|r| r["name"] == "lease");
            assert!(
                lease.is_some_and(|l| l["packets"].as_u64() > Some(100)),
                "{name}: {run}"
            );
        }
    }
    // A plan by which strangers and answers come to other workers than the leases is still found.
    let wrong = ["--steer", "nic=software&fields=source-address"];
    let (found, status) = verified("nat", &inputs, &wrong);
    assert_eq!((status, &found["equal"]), (1, &false.into()));
}
