//! Packets made for all functions of this repository.

use crate::support::Packet;
use crate::support::random::Random;

const SECOND: u64 = 1_000_000_000;

/// Frames of all kinds between a few hosts: TCP with all flags, UDP, ICMP, ARP, IPv6, options, fragments, too short.
pub fn frames(seed: u64, count: u64) -> Vec<Packet> {
    let mut random = Random(seed);
    let mut time = 1000 * SECOND;
    let mut all = Vec::new();
    for _ in 0..count {
        let bytes = frame(&mut random);
        all.push(Packet {
            program: 0,
            port: random.below(2) as u32,
            time,
            bytes,
        });
        time += match random.below(40) {
            0 => random.below(30) * SECOND,
            _ => random.below(2_000_000),
        };
    }
    all
}

fn frame(random: &mut Random) -> Vec<u8> {
    let host = |random: &mut Random| 1 + random.below(6) as u8;
    let (from, to) = (host(random), host(random));
    let mut bytes = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
    let options = random.below(4) == 0;
    let tcp = random.below(3) > 0;
    let mut segment = Vec::new();
    // Knocks and other ports.
    segment.extend((1000 + random.below(3) as u16).to_be_bytes());
    segment.extend((99 + random.below(5) as u16).to_be_bytes());
    if tcp {
        segment.extend((random.below(3000) as u32).to_be_bytes());
        segment.extend((random.below(3000) as u32).to_be_bytes());
        segment.push(0x50);
        segment.push(random.of(&[0x02, 0x10, 0x12, 0x11, 0x14, 0x18, 0x04, 0x01]));
        segment.extend([0x20, 0, 0, 0, 0, 0]);
    } else {
        segment.extend([0, 16, 0, 0]);
    }
    segment.resize(segment.len() + random.below(30) as usize, 7);
    let header = if options { 24 } else { 20 };
    match random.below(12) {
        0 => {
            bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + random.below(2) as u8]);
            bytes.extend([
                2, 0, 0, 0, 0, from, 10, 0, 0, from, 0, 0, 0, 0, 0, 0, 10, 0, 0, to,
            ]);
        }
        1 | 2 => {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            bytes.extend((segment.len() as u16).to_be_bytes());
            bytes.extend([if tcp { 6 } else { 17 }, 64]);
            for host in [from, to] {
                bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
            }
            bytes.extend(&segment);
        }
        kind => {
            bytes.extend([8, 0, 0x40 | (header / 4), 0]);
            bytes.extend((u16::from(header) + segment.len() as u16).to_be_bytes());
            let fragment = if kind == 3 { random.below(3) as u8 } else { 0 };
            let protocol = match (kind, tcp) {
                (4, _) => 1,
                (_, true) => 6,
                (_, false) => 17,
            };
            bytes.extend([
                0, 1, 0, fragment, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to,
            ]);
            if options {
                bytes.extend([1, 1, 1, 0]);
            }
            let sum: u32 = bytes[14..]
                .chunks(2)
                .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
                .sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
            bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            bytes.extend(&segment);
        }
    }
    if random.below(10) == 0 {
        bytes.truncate(14 + random.below(60) as usize);
    }
    bytes.resize(bytes.len().max(14), 0);
    bytes
}
