//! Packets to send one after another: those of the paths' assignments and of captures, as they are, answered,
//! changed in a few bytes, cut, or sent again.

use millrace_wire::{Rule, ethernet, ipv4, ipv6, link};
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
    /// From these frames, into this many ports.
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

/// Where the network header is, and whether it is IPv4's. Its lengths and sum are not looked at: packets are to be wrong
/// now and then.
fn network(frame: &[u8]) -> Option<(usize, bool)> {
    let link = link(frame, Rule::PROGRAM);
    match link.ethertype? {
        ethernet::IPV4 => Some((link.at, true)),
        ethernet::IPV6 => Some((link.at, false)),
        _ => None,
    }
}

/// Where source and destination address and the ports are: offset and length of each pair's first half.
fn pairs(frame: &[u8]) -> Vec<(usize, usize)> {
    let mut all = vec![(0, 6)];
    if let Some((at, four)) = network(frame) {
        let (addresses, header) = match (four, frame.get(at)) {
            (true, Some(first)) => (ipv4::SOURCE, ipv4::header_bytes(*first)),
            (true, None) => (ipv4::SOURCE, ipv4::HEADER),
            (false, _) => (ipv6::SOURCE, ipv6::HEADER),
        };
        all.push((at + addresses.start, addresses.len()));
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
    let header = frame.get_mut(at..).map(ipv4::Header::new_checked);
    if let Some(Ok(mut header)) = header {
        header.fill_checksum();
    }
}

#[cfg(test)]
mod tests {
    use super::{network, pairs};

    /// A type of IP where it would be behind a tag is none if there is no tag.
    #[test]
    fn headers_are_behind_tags_only() {
        let mut frame = vec![2; 60];
        for (kind, found) in [([0x81, 0], Some((18, true))), ([0x12, 0x34], None)] {
            frame.splice(12..14, kind);
            frame.splice(16..18, [8, 0]);
            assert_eq!(network(&frame), found);
            assert_eq!(pairs(&frame).len(), if found.is_some() { 3 } else { 1 });
        }
    }
}
