//! Packets that the workers of a test process.

use super::random::Random;
use super::workers::{Event, PHASE};

pub const SECOND: u64 = 1_000_000_000;

/// Ethernet, IPv4, TCP or UDP without ports' checksums.
pub fn frame(macs: (u8, u8), source: u32, destination: u32, ports: (u16, u16)) -> Vec<u8> {
    let mut bytes = vec![0; 54];
    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, macs.1]);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, macs.0]);
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&40u16.to_be_bytes());
    bytes[22] = 64;
    bytes[23] = 6;
    bytes[26..30].copy_from_slice(&source.to_be_bytes());
    bytes[30..34].copy_from_slice(&destination.to_be_bytes());
    bytes[34..36].copy_from_slice(&ports.0.to_be_bytes());
    bytes[36..38].copy_from_slice(&ports.1.to_be_bytes());
    bytes[46] = 0x50;
    let sum: u32 = bytes[14..34]
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    bytes[24..26].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
    bytes
}

/// Events in phases. Within a phase time stands still, so that the order in which workers get to packets is
/// no matter of time; between two it makes steps that let some entries expire.
pub fn events(
    workers: u32,
    phases: u32,
    each: u32,
    step: u64,
    mut make: impl FnMut(&mut Random, u64) -> (u32, u32, Vec<u8>),
) -> Vec<Event> {
    let mut random = Random(5);
    let mut out = Vec::new();
    let mut time = 1000 * SECOND;
    let mut number = 0;
    for _ in 0..phases {
        for _ in 0..each {
            let (mut worker, port, bytes) = make(&mut random, time);
            if worker == u32::MAX {
                worker = random.below(u64::from(workers)) as u32;
            }
            out.push(Event {
                worker: worker % workers,
                program: 0,
                port,
                time,
                number,
                bytes,
            });
            number += 1;
        }
        out.push(Event {
            worker: 0,
            program: PHASE,
            port: 0,
            time,
            number,
            bytes: Vec::new(),
        });
        time += random.below(step / 1_000_000 + 1) * 1_000_000;
    }
    out
}

/// Hosts of a network and some outside talk with each other.
pub fn talks(phases: u32) -> Vec<Event> {
    events(3, phases, 150, 45 * SECOND, |random, _| {
        let (inside, far) = (random.below(6) as u32, 0xc633_6400 + random.below(4) as u32);
        let port = 1000 + random.below(40) as u16;
        let lan = random.below(2) == 0;
        let bytes = match lan {
            true => frame((1, 2), 0x0a00_0001 + inside, far, (2000, port)),
            false => frame((2, 1), far, 0x0a00_0001 + inside, (port, 2000)),
        };
        (u32::MAX, u32::from(!lan), bytes)
    })
}
