//! A trace in memory, as it is replayed.

use std::sync::atomic::AtomicBool;

use millrace_dataplane::packet::{Arrival, Burst, MAX_FRAME};
use millrace_dataplane::port::InputOptions;

use crate::Error;
use crate::ports::Ports;

/// The most packets that are kept: enough for every flow of a large table to come several times.
const MOST: usize = 1 << 20;
/// And the most bytes of them.
const MOST_BYTES: usize = 256 << 20;
/// Fewer packets tell nothing.
const LEAST: usize = 64;

/// A packet.
#[derive(Clone, Copy, Debug)]
struct Entry {
    begin: usize,
    length: usize,
    port: u32,
    time: u64,
    wire: u32,
}

/// Packets in the order in which they came in.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Frames {
    /// Reads captures, up to a million packets or 256 MiB, or until `stop` is raised.
    ///
    /// # Errors
    /// One cannot be read, or all together have too few packets.
    pub fn read(ports: &Ports, names: &[String], stop: &'static AtomicBool) -> Result<Self, Error> {
        let options = InputOptions {
            loops: Some(1),
            stop,
        };
        let mut sources = ports.sources(names, &options)?;
        let mut frames = Self::default();
        while let Some((record, port)) = sources.next() {
            if frames.entries.len() == MOST || frames.bytes.len() + record.data.len() > MOST_BYTES {
                break;
            }
            // A run counts these as `oversize`; no function sees them.
            if record.data.len() > MAX_FRAME {
                sources.advance();
                continue;
            }
            frames.entries.push(Entry {
                begin: frames.bytes.len(),
                length: record.data.len(),
                port,
                time: record.time_ns,
                wire: record.original_length,
            });
            frames.bytes.extend_from_slice(record.data);
            sources.advance();
        }
        if let Some(error) = sources.failures().first() {
            return Err(Error::wrong(error).help("give a capture that can be read"));
        }
        if frames.entries.len() < LEAST {
            let count = frames.entries.len();
            return Err(
                Error::wrong(format!("--in: {count} packets are too few to measure with"))
                    .help(format!("give a capture of at least {LEAST} packets")),
            );
        }
        // Clocks never run backwards, in a run either.
        let mut clock = 0;
        for entry in &mut frames.entries {
            clock = entry.time.max(clock);
            entry.time = clock;
        }
        Ok(frames)
    }

    /// How many there are.
    pub fn packets(&self) -> usize {
        self.entries.len()
    }

    /// The time of the first, ns.
    pub fn start(&self) -> u64 {
        self.entries.first().map_or(0, |e| e.time)
    }

    /// Bytes of a packet, and the port at which it comes in.
    pub fn frame(&self, index: usize) -> Option<(&[u8], u32)> {
        let entry = self.entries.get(index)?;
        let bytes = self.bytes.get(entry.begin..entry.begin + entry.length)?;
        Some((bytes, entry.port))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], u32)> {
        (0..self.entries.len()).filter_map(|index| self.frame(index))
    }

    /// Puts a packet into a burst; false when it does not fit.
    pub fn push(&self, index: usize, burst: &mut Burst) -> bool {
        self.push_from(index, 0, burst)
    }

    /// The same, of a packet that index `home` of the indirection table has brought to its worker.
    pub fn push_from(&self, index: usize, home: u32, burst: &mut Burst) -> bool {
        self.push_later(index, 0, home, burst)
    }

    /// From the first packet to when the first one may come again, ns.
    pub fn round(&self) -> u64 {
        let last = self.entries.last().map_or(0, |e| e.time);
        let all = last.saturating_sub(self.start());
        all + all / self.entries.len().max(1) as u64 + 1
    }

    /// The same, so many ns later.
    pub fn push_later(&self, index: usize, later: u64, home: u32, burst: &mut Burst) -> bool {
        let (Some(entry), Some((frame, port))) = (self.entries.get(index), self.frame(index))
        else {
            return false;
        };
        let arrival = Arrival {
            number: index as u64,
            port,
            time: entry.time.saturating_add(later),
            stamp: entry.time.saturating_add(later),
            wire: entry.wire,
            home,
            place: 0,
        };
        burst.push(frame, arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::packet::Layout;

    #[test]
    fn packets_go_into_bursts_as_they_came() {
        let entry = |time| Entry {
            begin: 0,
            length: 2,
            port: 1,
            time,
            wire: 2,
        };
        let frames = Frames {
            bytes: vec![1, 2],
            entries: vec![entry(1000), entry(1400)],
        };
        assert_eq!((frames.start(), frames.packets()), (1000, 2));
        let mut burst = Burst::new(1, 2, Layout::Pooled);
        assert!(frames.push(1, &mut burst));
        assert!(!frames.push(0, &mut burst) && !frames.push(2, &mut burst));
        let came = burst.outcome(0).unwrap();
        assert_eq!((came.number, came.port), (1, 1));
        assert_eq!(burst.time(0), Some(1400));
        assert_eq!(frames.all().count(), 2);
    }
}
