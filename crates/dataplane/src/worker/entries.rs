//! Under which entry of the indirection table most packets of a worker come.
//!
//! Packets of a flood whose hashes collide are all on one entry, and so on one worker, whatever the table leads to.
//! Devices tell the queue and not the entry, and to hash every packet again would cost more than some functions do.
//! So of a burst one packet, drawn at random, stands for all of it, and of long bursts, which a worker has that has much
//! to do, one in eight, drawn at random, for eight: the packet's entry is counted with as many packets as it stands for.
//! On average that is what a count of all packets is, for one hash in 256 packets. What is counted is the worker's own;
//! once a second the heaviest entry is told where everybody reads it, as one number.

use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_steer::Owners;

/// How long packets are counted before the heaviest entry is told.
const WINDOW: Duration = Duration::from_secs(1);

/// Bursts of this many packets are long, and one of this many of these counts for all.
const LONG: usize = 16;
const OF: u64 = 8;

/// The heaviest entry of a worker over the last window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heaviest {
    /// the port of the function that the packets came in at
    pub port: u16,
    /// the place in the port's indirection table
    pub entry: u16,
    /// its part of the worker's packets, of all its ports, 0 to 1
    pub share: f32,
}

/// Set in a number that tells of an entry; none is 0.
const THERE: u64 = 1 << 63;

impl Heaviest {
    /// As one number, which no reader sees half of.
    fn packed(self) -> u64 {
        let (port, entry) = (u64::from(self.port & 0x7fff), u64::from(self.entry));
        THERE | port << 48 | entry << 32 | u64::from(self.share.to_bits())
    }

    /// From such a number.
    pub fn unpacked(number: u64) -> Option<Self> {
        (number & THERE != 0).then_some(Self {
            port: (number >> 48) as u16 & 0x7fff,
            entry: (number >> 32) as u16,
            share: f32::from_bits(number as u32),
        })
    }
}

/// What one worker counts.
pub struct Entries {
    owners: Arc<Vec<Owners>>,
    /// by port and entry: packets of this window
    counts: Vec<Vec<u64>>,
    /// packets of this window
    all: u64,
    since: Instant,
    /// a whole window is over
    told: bool,
    draws: u64,
}

impl Entries {
    /// For packets that these bring to their workers, a port each; none where that is not known, or makes no
    /// difference.
    pub fn new(owners: &Arc<Vec<Owners>>, worker: usize, workers: usize) -> Option<Self> {
        let known = !owners.is_empty() && workers > 1;
        let counts = owners.iter().map(|o| vec![0; o.entries() as usize]);
        known.then(|| Self {
            counts: counts.collect(),
            owners: owners.clone(),
            all: 0,
            since: Instant::now(),
            told: false,
            // Any number but 0.
            draws: worker as u64 + 1,
        })
    }

    /// Which packet of a burst of this many stands for it, if one does, and for how many packets it stands.
    pub fn drawn(&mut self, packets: usize) -> Option<(usize, u64)> {
        // Marsaglia, Xorshift RNGs (2003): the full period of 64 bits.
        self.draws ^= self.draws << 13;
        self.draws ^= self.draws >> 7;
        self.draws ^= self.draws << 17;
        let bursts = if packets < LONG { 1 } else { OF };
        let at = ((self.draws >> 32) as usize * packets) >> 32;
        self.draws
            .is_multiple_of(bursts)
            .then_some((at, bursts * packets as u64))
    }

    /// Counts a packet that stands for this many.
    pub fn count(&mut self, port: u32, frame: &[u8], packets: u64) {
        let Some(owners) = self.owners.get(port as usize) else {
            return;
        };
        let counts = self.counts.get_mut(port as usize);
        let count = counts.and_then(|c| c.get_mut(owners.index(frame) as usize));
        if let Some(count) = count {
            *count += packets;
        }
        self.all += packets;
    }

    /// What is to be told, if a window is over: as a number for [`Heaviest::unpacked`]. At the `end` the first window
    /// is over, however long it was.
    pub fn over(&mut self, end: bool) -> Option<u64> {
        if self.since.elapsed() < WINDOW && (self.told || !end) {
            return None;
        }
        let found = self.heaviest();
        for counts in &mut self.counts {
            counts.fill(0);
        }
        (self.all, self.since, self.told) = (0, Instant::now(), true);
        Some(found.map_or(0, Heaviest::packed))
    }

    fn heaviest(&self) -> Option<Heaviest> {
        let of = |(port, counts): (usize, &Vec<u64>)| {
            let counts = counts.iter().enumerate();
            let (entry, count) = counts.max_by_key(|(_, count)| **count)?;
            Some((*count, port, entry))
        };
        let all = self.counts.iter().enumerate().filter_map(of);
        let (count, port, entry) = all.max_by_key(|(count, ..)| *count)?;
        (count > 0).then(|| Heaviest {
            port: port as u16,
            entry: entry as u16,
            share: (count as f64 / self.all as f64) as f32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_steer::{Rss, Steering, nic::named};

    const WORKERS: u32 = 2;

    fn owners() -> Arc<Vec<Owners>> {
        let nic = named("generic").unwrap();
        let steering = Steering {
            nic: Rss::new(&nic, WORKERS),
            software: std::collections::BTreeMap::new(),
            inside: false,
            echoes: false,
            odd: None,
        };
        Arc::new(vec![steering.owners(); 2])
    }

    /// Ethernet, IPv4, UDP from a host's port.
    fn udp(host: u16, port: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0]);
        frame.extend(host.to_be_bytes());
        frame.extend([192, 0, 2, 1]);
        frame.extend(port.to_be_bytes());
        frame.extend([0, 53, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn a_flood_of_one_flow_is_the_heaviest_entry_with_its_share() {
        let owners = owners();
        let mut entries = Entries::new(&owners, 0, 2).unwrap();
        let flood = udp(7, 7);
        // Three of four packets of each burst are the flood's, at the second port; the others are of 4,096 flows.
        for n in 0..200_000_u32 {
            let burst = 1 + (n % 32) as usize;
            let Some((at, packets)) = entries.drawn(burst) else {
                assert!(burst >= LONG);
                continue;
            };
            assert!(at < burst);
            if (at + n as usize).is_multiple_of(4) {
                let other = n.wrapping_mul(2_654_435_761) >> 20;
                entries.count(other & 1, &udp(other as u16, 9), packets);
            } else {
                entries.count(1, &flood, packets);
            }
        }
        assert_eq!(entries.over(false), None);
        let told = Heaviest::unpacked(entries.over(true).unwrap()).unwrap();
        let entry = owners[1].index(&flood);
        assert_eq!((told.port, u32::from(told.entry)), (1, entry));
        assert!((told.share - 0.75).abs() < 0.02, "{told:?}");
        // What was told is over; the next window has its own time.
        assert_eq!(entries.heaviest(), None);
        assert_eq!(entries.over(true), None);
        entries.since = entries.since.checked_sub(WINDOW).unwrap();
        assert_eq!(entries.over(false), Some(0));
    }

    #[test]
    fn every_packet_of_a_burst_is_drawn_as_often() {
        let mut entries = Entries::new(&owners(), 3, 4).unwrap();
        for (burst, bursts) in [(7, 70_000), (32, 2_560_000)] {
            let mut often = vec![0_u32; burst];
            let mut all = 0;
            for _ in 0..bursts {
                let Some((at, packets)) = entries.drawn(burst) else {
                    continue;
                };
                often[at] += 1;
                all += packets;
            }
            assert!(often.iter().all(|n| n.abs_diff(10_000) < 500), "{often:?}");
            // What was drawn stands for all packets there were.
            let part = all as f64 / (bursts * burst) as f64;
            assert!((part - 1.0).abs() < 0.01, "{part}");
        }
    }

    #[test]
    fn one_worker_and_unknown_steering_count_nothing() {
        assert!(Entries::new(&owners(), 0, 1).is_none());
        assert!(Entries::new(&Arc::default(), 0, 2).is_none());
        let mut entries = Entries::new(&owners(), 0, 2).unwrap();
        entries.count(9, &udp(1, 1), 32);
        assert_eq!(entries.heaviest(), None);
    }

    #[test]
    fn what_is_told_is_one_number() {
        for (port, entry, share) in [(0, 0, 1.0), (255, 511, 0.125), (0x7fff, u16::MAX, 0.5)] {
            let one = Heaviest { port, entry, share };
            assert_eq!(Heaviest::unpacked(one.packed()), Some(one));
        }
        assert_eq!(Heaviest::unpacked(0), None);
    }
}
