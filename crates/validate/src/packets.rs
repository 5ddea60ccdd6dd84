//! Packets to send one after another: those of the paths' assignments and of captures, as they are, answered,
//! changed in a few bytes, cut, or sent again.

use rand::{Rng, RngExt};

use crate::trial::Trial;

/// Steps of time between packets, ns, and how often each in 32: mostly close together, sometimes beyond what
/// the bundled functions remember.
const STEPS: &[(u64, u32)] = &[
    (0, 8),
    (1_000, 16),
    (1_000_000, 4),
    (1_000_000_000, 2),
    (70_000_000_000, 1),
    (400_000_000_000, 1),
];

/// Where the network header stands behind no, one or two tags.
const NETWORK: [usize; 3] = [14, 18, 22];

/// Packets sent lately that may be sent again or answered.
const LATELY: usize = 8;

/// A source of packets.
pub struct Packets<R> {
    random: R,
    pool: Vec<Vec<u8>>,
    ports: u32,
    lately: Vec<(Vec<u8>, u32)>,
}

impl<R: Rng> Packets<R> {
    /// From these frames, into so many ports.
    pub fn new(random: R, pool: Vec<Vec<u8>>, ports: u32) -> Self {
        Self {
            random,
            pool,
            ports: ports.max(1),
            lately: Vec::new(),
        }
    }

    /// The next frame, its port, and ns since the one before.
    fn draw(&mut self) -> (Vec<u8>, u32, u64) {
        let mut port = self.random.random_range(0..self.ports);
        let recent = (!self.lately.is_empty()).then(|| {
            let at = self.random.random_range(0..self.lately.len());
            self.lately.get(at).cloned()
        });
        let fresh = |this: &mut Self| match this.pool.len() {
            0 => vec![0; 60],
            n => {
                let at = this.random.random_range(0..n);
                this.pool.get(at).cloned().unwrap_or_default()
            }
        };
        let mut frame = match (self.random.random_range(0..16), recent.flatten()) {
            // Again.
            (0..=1, Some((frame, from))) => {
                port = from;
                frame
            }
            // An answer, from another port.
            (2..=4, Some((mut frame, from))) => {
                swap(&mut frame);
                port = (from + 1) % self.ports;
                frame
            }
            // Another packet between the same endpoints, or hosts; either way round.
            (n @ 5..=11, Some((old, from))) => {
                let mut frame = fresh(self);
                endpoints(&old, &mut frame, n < 9);
                port = from;
                if self.random.random_range(0..3) == 0 {
                    swap(&mut frame);
                    port = (from + 1) % self.ports;
                }
                frame
            }
            // The next port of the same host.
            (12, Some((mut frame, from))) => {
                port = from;
                next_port(&mut frame);
                frame
            }
            _ => fresh(self),
        };
        if self.random.random_range(0..4) == 0 {
            for _ in 0..self.random.random_range(1..=2) {
                let most = frame.len().min(80);
                if most > 0 {
                    let at = self.random.random_range(0..most);
                    let how = self.random.random_range(0..4);
                    let byte = self.random.random();
                    if let Some(slot) = frame.get_mut(at) {
                        // What is compared with a number is often one off another.
                        *slot = match how {
                            0 => slot.wrapping_add(1),
                            1 => slot.wrapping_sub(1),
                            _ => byte,
                        };
                    }
                }
            }
        }
        if self.random.random_range(0..24) == 0 {
            let length = self.random.random_range(0..=frame.len().min(120));
            frame.truncate(length);
        }
        if self.random.random_range(0..8) != 0 {
            checksum(&mut frame);
        }
        if self.lately.len() >= LATELY {
            self.lately.remove(0);
        }
        self.lately.push((frame.clone(), port));
        let mut at = self.random.random_range(0..STEPS.iter().map(|s| s.1).sum());
        let step = STEPS.iter().find(|(_, often)| {
            let here = at < *often;
            at = at.saturating_sub(*often);
            here
        });
        let most = step.map_or(1, |s| s.0);
        (frame, port, self.random.random_range(0..=most))
    }

    /// Makes later packets from this one, too: it did something new.
    pub fn keep(&mut self, frame: &[u8]) {
        if !frame.is_empty() {
            self.pool.push(frame.to_vec());
        }
    }

    /// A trial of the next frame after this time.
    pub fn trial(&mut self, entry: usize, now: u64) -> Trial {
        let (packet, port, step) = self.draw();
        Trial {
            entry,
            packet,
            port,
            ports: self.ports,
            time: now.saturating_add(step),
        }
    }
}

/// Where the network header is, and whether it is IPv4's.
fn network(frame: &[u8]) -> Option<(usize, bool)> {
    NETWORK
        .into_iter()
        .find_map(|at| match frame.get(at - 2..at)? {
            [8, 0] => Some((at, true)),
            [0x86, 0xdd] => Some((at, false)),
            _ => None,
        })
}

/// Where source and destination address and the ports are: offset and length of each pair's first half.
fn pairs(frame: &[u8]) -> Vec<(usize, usize)> {
    let mut all = vec![(0, 6)];
    if let Some((at, four)) = network(frame) {
        let header = match (four, frame.get(at)) {
            (true, Some(first)) => usize::from(first & 15) * 4,
            _ => 40,
        };
        all.push(if four { (at + 12, 4) } else { (at + 8, 16) });
        all.push((at + header, 2));
    }
    all
}

/// Source and destination swapped, in all headers.
fn swap(frame: &mut [u8]) {
    for (at, length) in pairs(frame) {
        if let Some(both) = frame.get_mut(at..at + 2 * length) {
            both.rotate_left(length);
        }
    }
}

/// One more in the destination port.
fn next_port(frame: &mut [u8]) {
    let Some((at, length)) = pairs(frame).get(2).copied() else {
        return;
    };
    if let Some([high, low]) = frame.get_mut(at + length..at + 2 * length) {
        [*high, *low] = u16::from_be_bytes([*high, *low])
            .wrapping_add(1)
            .to_be_bytes();
    }
}

/// Copies the addresses, and perhaps the ports, of one frame to another one with headers of the same kind.
fn endpoints(from: &[u8], to: &mut [u8], ports: bool) {
    let pairs = pairs(from).into_iter().zip(pairs(to));
    for ((a, length), (b, other)) in pairs.take(if ports { 3 } else { 2 }) {
        let bytes = from.get(a..a + 2 * length).filter(|_| length == other);
        if let (Some(bytes), Some(slot)) = (bytes, to.get_mut(b..b + 2 * length)) {
            slot.copy_from_slice(bytes);
        }
    }
}

/// Puts the checksum of an IPv4 header right (RFC 791).
pub(crate) fn checksum(frame: &mut [u8]) {
    let Some((at, true)) = network(frame) else {
        return;
    };
    let length = frame.get(at).map_or(0, |first| usize::from(first & 15) * 4);
    let Some(header) = frame.get_mut(at..at + length).filter(|h| h.len() >= 20) else {
        return;
    };
    if let Some(sum) = header.get_mut(10..12) {
        sum.fill(0);
    }
    let words = header
        .chunks(2)
        .map(|w| w.iter().fold(0_u32, |n, b| n << 8 | u32::from(*b)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if let Some(slot) = header.get_mut(10..12) {
        slot.copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}
