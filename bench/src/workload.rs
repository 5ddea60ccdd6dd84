//! The packets that are measured: 60 bytes (64 with the frame check sequence), this many flows, in an
//! order drawn with a fixed seed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::contender::BURST;

/// How often each flow comes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Skew {
    /// all equally
    Uniform,
    /// the n-th most frequent flow as n to the minus this
    Zipf(f64),
}

impl Skew {
    /// For tables.
    pub fn name(self) -> String {
        match self {
            Self::Uniform => "uniform".into(),
            Self::Zipf(exponent) => format!("zipf {exponent}"),
        }
    }
}

/// One packet on its way in.
#[derive(Clone, Copy)]
pub struct Frame {
    /// ingress port
    pub port: u32,
    /// the bytes
    pub bytes: [u8; 60],
}

/// What a measured function is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// TCP to port 80 from this many sources
    Sources,
    /// UDP from this many LAN hosts to one server
    Outbound,
    /// the same, and every other burst answers
    BothWays,
    /// UDP to this many LAN hosts, from the WAN
    Inbound,
}

impl Traffic {
    /// A packet of flow `flow`; `answer` picks the direction where there are two.
    pub fn frame(self, flow: u32, answer: bool) -> Frame {
        let host = 0x0a00_0000 + flow;
        let server = 0xc000_0201;
        match self {
            Self::Sources => frame(0, 6, (host, 40000), (server, 80)),
            Self::Outbound => frame(0, 17, (host, 40000), (server, 53)),
            Self::BothWays if answer => frame(1, 17, (server, 53), (host, 40000)),
            Self::BothWays => frame(0, 17, (host, 40000), (server, 53)),
            Self::Inbound => frame(1, 17, (server, 53), (host, 40000)),
        }
    }

    /// Packets that bring the function's table to the state that is measured, flow by flow.
    pub fn opening(self, flow: u32) -> Vec<Frame> {
        match self {
            // The three knocks, and the door is open.
            Self::Sources => [100, 101, 102]
                .map(|port| frame(0, 6, (0x0a00_0000 + flow, 40000), (0xc000_0201, port)))
                .to_vec(),
            _ => vec![self.frame(flow, false)],
        }
    }
}

fn frame(port: u32, protocol: u8, from: (u32, u16), to: (u32, u16)) -> Frame {
    let mut bytes = [0; 60];
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut bytes[14..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&46_u16.to_be_bytes());
    ip[8] = 64;
    ip[9] = protocol;
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
    if protocol == 6 {
        ip[32] = 0x50; // twenty bytes of TCP header
        ip[33] = 0x10; // ACK
    } else {
        ip[24..26].copy_from_slice(&26_u16.to_be_bytes());
    }
    Frame { port, bytes }
}

/// Flow numbers in the order they come, endlessly.
pub struct Order {
    random: ChaCha8Rng,
    /// packets until the direction is drawn again: a burst is of one port, as a receive queue gives it
    left: usize,
    answer: bool,
    flows: u32,
    /// for a skewed order: the probability of the first n flows, and which flow is the n-th
    ranks: Option<(Vec<f64>, Vec<u32>)>,
}

impl Order {
    /// A fixed seed: every run measures the same packets.
    pub fn new(flows: u32, skew: Skew) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let ranks = match skew {
            Skew::Uniform => None,
            Skew::Zipf(exponent) => {
                let mut sum = 0.0;
                let mut cumulative: Vec<f64> = (1..=flows)
                    .map(|rank| {
                        sum += f64::from(rank).powf(-exponent);
                        sum
                    })
                    .collect();
                cumulative.iter_mut().for_each(|c| *c /= sum);
                // Frequent flows must not be neighbours in the table.
                let mut flow: Vec<u32> = (0..flows).collect();
                for i in (1..flow.len()).rev() {
                    flow.swap(i, random.random_range(0..=i));
                }
                Some((cumulative, flow))
            }
        };
        Self {
            random,
            left: 0,
            answer: false,
            flows,
            ranks,
        }
    }

    /// The next packet's flow, and whether it is an answer.
    pub fn next(&mut self) -> (u32, bool) {
        if self.left == 0 {
            self.left = BURST;
            self.answer = self.random.random();
        }
        self.left -= 1;
        let flow = match &self.ranks {
            None => self.random.random_range(0..self.flows),
            Some((cumulative, flow)) => {
                let draw: f64 = self.random.random();
                flow[cumulative
                    .partition_point(|c| *c < draw)
                    .min(flow.len() - 1)]
            }
        };
        (flow, self.answer)
    }
}
