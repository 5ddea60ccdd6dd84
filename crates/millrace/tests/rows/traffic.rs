//! Traces with both directions between a LAN and a WAN.

use std::path::{Path, PathBuf};

use millrace::Function;
use millrace::traffic::capture::{Reader, Record, Writer};
use millrace::traffic::split::{Side, Split};
use millrace_topology::Topology;

use super::{Part, of_repository, one_by_one};

/// Senders of the LAN.
pub const SPLIT: &str = "lan=10.0.0.0/24,fd00::/8";
/// The address that nat.c has by default.
const PUBLIC: [u8; 4] = [192, 0, 2, 1];

/// A packet at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub port: u32,
    /// ns since the epoch
    pub time: u64,
    /// bytes on the wire
    pub wire: u32,
    pub bytes: Vec<u8>,
}

impl Packet {
    pub fn of(port: u32, record: &Record<'_>) -> Self {
        Self {
            port,
            time: record.time_ns,
            wire: record.original_length,
            bytes: record.data.to_vec(),
        }
    }
}

/// A capture, and its packets with the ports that they enter at.
pub struct Trace {
    pub name: &'static str,
    pub path: PathBuf,
    /// the rule that divides it over the ports
    pub split: Split,
    pub packets: Vec<Packet>,
}

/// The bundled capture.
pub fn talk(folder: &Path, split: &str) -> Trace {
    let split: Split = split.parse().unwrap();
    let mut reader = Reader::open(of_repository("captures/talk.pcap")).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        packets.push(Packet::of(port(&split, record.data), &record));
    }
    written(folder, "talk", split, packets)
}

fn port(split: &Split, bytes: &[u8]) -> u32 {
    match split.side(bytes) {
        Side::Named => 0,
        Side::Other => 1,
    }
}

fn written(folder: &Path, name: &'static str, split: Split, packets: Vec<Packet>) -> Trace {
    let path = folder.join(format!("{name}.pcap"));
    let mut writer = Writer::create(&path, &["a"]).unwrap();
    for packet in &packets {
        let Packet {
            time, wire, bytes, ..
        } = packet;
        writer.write(*time, 0, *wire, bytes).unwrap();
    }
    writer.finish().unwrap();
    Trace {
        name,
        path,
        split,
        packets,
    }
}

/// Draws of a linear congruential generator (Knuth, MMIX).
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// All of them; `nat` says what is answered.
pub fn all(folder: &Path, nat: &Function) -> Vec<Trace> {
    let mixed = mixed(600);
    vec![
        talk(folder, SPLIT),
        written(folder, "mixed", SPLIT.parse().unwrap(), mixed.clone()),
        answered(folder, nat, mixed),
    ]
}

/// Packets of few hosts to few ports, of both directions in runs of any length, in order but for some stamps.
fn mixed(count: usize) -> Vec<Packet> {
    let mut draw = Draw(3);
    let mut time = 1_700_000_000_000_000_000;
    let mut from_lan = true;
    let mut packets = Vec::new();
    while packets.len() < count {
        time += match draw.below(100) {
            // Entries expire.
            0 => 70_000_000_000,
            1..20 => 0,
            _ => draw.below(4_000_000),
        };
        let late = draw.below(20) == 0;
        from_lan ^= draw.below(3) == 0;
        let host = [10, 0, 0, 1 + draw.below(3) as u8];
        let other = match draw.below(4) {
            0 => PUBLIC,
            n => [198, 51, 100, n as u8],
        };
        let port = |draw: &mut Draw| match draw.below(3) {
            0 => 100 + draw.below(3) as u16,
            1 => 1024 + draw.below(6) as u16,
            _ => 53,
        };
        let ports = (port(&mut draw), port(&mut draw));
        let (from, to) = if from_lan {
            (host, other)
        } else {
            (other, host)
        };
        let protocol = match draw.below(8) {
            0 => 1,
            1..4 => 17,
            _ => 6,
        };
        let flags = [0x02, 0x10, 0x12, 0x11, 0x18, 0x04][draw.below(6) as usize];
        let mut bytes = frame(
            (from, to),
            ports,
            (protocol, flags),
            draw.below(300) as usize,
        );
        match draw.below(40) {
            0 => bytes.truncate(20),
            // No IP.
            1 => bytes[12..14].copy_from_slice(&[8, 6]),
            _ => {}
        }
        packets.push(Packet {
            port: u32::from(!from_lan),
            time: if late { time - 1_000_000 } else { time },
            wire: bytes.len() as u32,
            bytes,
        });
    }
    // The rule of a run, which looks at the packet alone.
    let split: Split = SPLIT.parse().unwrap();
    for packet in &mut packets {
        packet.port = port(&split, &packet.bytes);
    }
    packets
}

/// The packets of the LAN, and answers to what a NAT makes of them, a few packets later.
fn answered(folder: &Path, nat: &Function, packets: Vec<Packet>) -> Trace {
    let mut lan: Vec<_> = packets.into_iter().filter(|p| p.port == 0).collect();
    lan.sort_by_key(|p| p.time);
    let asked = Trace {
        name: "asked",
        path: PathBuf::new(),
        split: SPLIT.parse().unwrap(),
        packets: lan.clone(),
    };
    let sent = one_by_one::run(&[Part::Function(nat)], &Topology::line(1), &asked).out;
    let answers = sent
        .into_iter()
        .filter(|p| p.port == 1 && p.bytes.len() >= 38);
    let answers = answers.map(|mut packet| {
        let bytes = &mut packet.bytes;
        let (source, target) = (bytes[26..30].to_vec(), bytes[30..34].to_vec());
        bytes[26..30].copy_from_slice(&target);
        bytes[30..34].copy_from_slice(&source);
        bytes[34..38].rotate_left(2);
        packet.time += 3_000_000;
        packet
    });
    lan.extend(answers);
    lan.sort_by_key(|p| p.time);
    let split: Split = SPLIT.parse().unwrap();
    for packet in &mut lan {
        packet.port = port(&split, &packet.bytes);
    }
    written(folder, "answered", split, lan)
}

/// An IPv4 packet of TCP (6, with these flags), UDP (17) or ICMP (1, an echo request), with right header checksums of IP
/// (RFC 791) and none of the transport.
fn frame(
    (from, to): ([u8; 4], [u8; 4]),
    ports: (u16, u16),
    (protocol, flags): (u8, u8),
    payload: usize,
) -> Vec<u8> {
    let transport = match protocol {
        6 => 20,
        _ => 8,
    };
    let length = 20 + transport + payload;
    let mut frame = vec![2, 0, 0, 0, 0, to[3], 2, 0, 0, 0, 0, from[3], 8, 0, 0x45, 0];
    frame.extend((length as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend(from.into_iter().chain(to));
    let words = frame[14..34].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let (source, target) = (ports.0.to_be_bytes(), ports.1.to_be_bytes());
    match protocol {
        6 => {
            frame.extend(source.into_iter().chain(target));
            frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        }
        17 => {
            frame.extend(source.into_iter().chain(target));
            frame.extend(((8 + payload) as u16).to_be_bytes());
            frame.extend([0, 0]);
        }
        _ => {
            frame.extend([8, 0, 0, 0]);
            frame.extend(source.into_iter().chain([0, 1]));
        }
    }
    frame.resize(14 + length, 0);
    frame
}
