//! Packets of the five functions: 60 bytes, this many flows, each drawn with the same probability.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Measured packets; the benchmark goes through them again and again.
const MEASURED: u32 = 1 << 16;

/// What a function is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// UDP from this many hosts to one
    Udp,
    /// TCP acknowledgements from this many sources that have knocked
    Knocked,
    /// bare acknowledgements of this many established connections, in both directions
    Connections,
}

struct Segment {
    flags: u8,
    seq: u32,
    ack: u32,
}

const SYN: u8 = 2;
const ACK: u8 = 16;

fn frame(
    port: u32,
    (from, to): ((u32, u16), (u32, u16)),
    segment: Option<&Segment>,
) -> (u32, [u8; 60]) {
    let mut bytes = [0; 60];
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut bytes[14..];
    ip[0] = 0x45;
    let length: u16 = if segment.is_some() { 40 } else { 46 };
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[8] = 64;
    ip[9] = if segment.is_some() { 6 } else { 17 };
    ip[12..16].copy_from_slice(&from.0.to_be_bytes());
    ip[16..20].copy_from_slice(&to.0.to_be_bytes());
    let sum: u32 = ip[..20]
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16 + (sum >> 16) as u16)).to_be_bytes());
    ip[20..22].copy_from_slice(&from.1.to_be_bytes());
    ip[22..24].copy_from_slice(&to.1.to_be_bytes());
    match segment {
        None => ip[24..26].copy_from_slice(&26_u16.to_be_bytes()),
        Some(s) => {
            ip[24..28].copy_from_slice(&s.seq.to_be_bytes());
            ip[28..32].copy_from_slice(&s.ack.to_be_bytes());
            ip[32] = 0x50; // twenty bytes of header
            ip[33] = s.flags;
            ip[34..36].copy_from_slice(&0x2000_u16.to_be_bytes());
        }
    }
    (port, bytes)
}

impl Traffic {
    fn opening(self, flow: u32) -> Vec<(u32, [u8; 60])> {
        let (host, server) = ((0x0a00_0000 + flow, 40000), 0xc000_0201);
        match self {
            Self::Udp => vec![self.packet(flow, false)],
            Self::Knocked => [100, 101, 102]
                .map(|port| {
                    let bare = Segment {
                        flags: ACK,
                        seq: 1,
                        ack: 1,
                    };
                    frame(0, (host, (server, port)), Some(&bare))
                })
                .to_vec(),
            Self::Connections => {
                let (there, back) = ((host, (server, 80)), ((server, 80), host));
                let segment = |flags, seq, ack| Segment { flags, seq, ack };
                vec![
                    frame(0, there, Some(&segment(SYN, 1000, 0))),
                    frame(1, back, Some(&segment(SYN | ACK, 5000, 1001))),
                    frame(0, there, Some(&segment(ACK, 1001, 5001))),
                ]
            }
        }
    }

    fn packet(self, flow: u32, answer: bool) -> (u32, [u8; 60]) {
        let (host, server) = ((0x0a00_0000 + flow, 40000), 0xc000_0201);
        let segment = |seq, ack| Segment {
            flags: ACK,
            seq,
            ack,
        };
        match self {
            Self::Udp => frame(0, (host, (server, 53)), None),
            Self::Knocked => frame(0, (host, (server, 80)), Some(&segment(1, 1))),
            Self::Connections if answer => {
                frame(1, ((server, 80), host), Some(&segment(5001, 1001)))
            }
            Self::Connections => frame(0, (host, (server, 80)), Some(&segment(1001, 5001))),
        }
    }

    /// The file that bench/replicate/turns.c reads.
    pub fn file(self, flows: u32) -> Vec<u8> {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let opening: Vec<_> = (0..flows).flat_map(|flow| self.opening(flow)).collect();
        let measured = (0..MEASURED).map(|_| {
            let flow = random.random_range(0..flows);
            self.packet(flow, random.random())
        });
        let mut out = Vec::new();
        out.extend((opening.len() as u32).to_le_bytes());
        out.extend(MEASURED.to_le_bytes());
        for (port, bytes) in opening.iter().copied().chain(measured) {
            out.extend(port.to_le_bytes());
            out.extend(bytes);
        }
        out
    }
}
