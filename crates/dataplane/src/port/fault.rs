//! Faults made on purpose and recording, on any live port.
//!
//! Options that every live port takes, beside its own: `drop=P`, `duplicate=P`, `reorder=P`,
//! `corrupt=P` (shares of the packets, 0 to 1), `delay=MS`, `seed=N` (default 0), and
//! `record=FILE.pcapng`. Faults happen on the way in, one draw a fault and packet from a generator
//! seeded with the number given and the worker's, so the same packets meet the same faults again. A
//! packet that is reordered lets up to four others pass it. The recording has two interfaces: `in`,
//! what functions got, faults included, and `out`, what they sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millrace_traffic::capture::{WriteError, Writer};

use super::{Buffers, Departure, Frame, LivePort, PortError, Query, Queue, QueueCounts};
use crate::packet::Layout;

/// Packets that a queue may hold back at a time.
const HELD: usize = 4096;
/// The most packets that pass one that is reordered.
const PASSED: u64 = 4;
/// Ports of the recording.
const IN: u32 = 0;
const OUT: u32 = 1;

/// Which faults, and how often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    drop: f64,
    duplicate: f64,
    reorder: f64,
    corrupt: f64,
    delay: Duration,
    seed: u64,
    record: Option<String>,
}

impl Faults {
    /// Takes the options out of a port's word.
    ///
    /// # Errors
    /// [`PortError::Option`] when one makes no sense.
    pub fn take(query: &mut Query) -> Result<Self, PortError> {
        let mut share = |key: &str| {
            let what = "a share of the packets, 0 to 1";
            let share = query.value::<f64>(key, what)?.unwrap_or(0.0);
            if (0.0..=1.0).contains(&share) {
                Ok(share)
            } else {
                Err(query.wrong(key, what))
            }
        };
        Ok(Self {
            drop: share("drop")?,
            duplicate: share("duplicate")?,
            reorder: share("reorder")?,
            corrupt: share("corrupt")?,
            delay: Duration::from_millis(query.number("delay", 0, 0..=60_000)?),
            seed: query.number("seed", 0, 0..=u64::MAX)?,
            record: query.text("record").filter(|r| !r.is_empty()),
        })
    }

    /// Puts itself between the port and its workers, if there is anything to do.
    ///
    /// # Errors
    /// [`PortError::Write`] when the recording cannot be created.
    pub fn around(&self, mut port: LivePort, word: &str) -> Result<LivePort, PortError> {
        let quiet = Self {
            seed: self.seed,
            ..Self::default()
        };
        if *self == quiet {
            return Ok(port);
        }
        let record = self.record.as_deref();
        let record = record.map(|file| Writer::create(file, &["in", "out"]));
        let record = record.transpose()?.map(|w| Arc::new(Mutex::new(Some(w))));
        let wrap = |(worker, queue): (usize, Box<dyn Queue>)| -> Box<dyn Queue> {
            Box::new(Faulty {
                queue,
                faults: self.clone(),
                draws: Draws(self.seed.wrapping_add(worker as u64)),
                own: Buffers::new(HELD, 0, Layout::Pooled),
                held: VecDeque::new(),
                arrived: Vec::new(),
                record: record.clone(),
                counts: QueueCounts::default(),
                closed: false,
            })
        };
        port.queues = port.queues.into_iter().enumerate().map(wrap).collect();
        port.facts
            .push(format!("{word}: faults made on purpose, or recorded"));
        Ok(port)
    }
}

/// A port's word with another path of its recording, if it has one.
pub fn beside(word: &str, path: impl Fn(&str) -> String) -> String {
    let Some((name, options)) = word.split_once('?') else {
        return word.to_owned();
    };
    let own = |option: &str| match option.strip_prefix("record=") {
        Some(file) if !file.is_empty() => format!("record={}", path(file)),
        _ => option.to_owned(),
    };
    let options: Vec<_> = options.split('&').map(own).collect();
    format!("{name}?{}", options.join("&"))
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014, fig. 17).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True for this share of the draws.
    fn happens(&mut self, share: f64) -> bool {
        // 53 bits: all that a double tells apart in [0, 1).
        ((self.next() >> 11) as f64) < share * (1_u64 << 53) as f64
    }
}

/// A packet that is held back, in a buffer of our own.
struct Held {
    frame: Frame,
    /// not before this
    until: Instant,
    /// not before as many have passed it
    passes: u64,
}

struct Faulty {
    queue: Box<dyn Queue>,
    faults: Faults,
    draws: Draws,
    own: Buffers,
    held: VecDeque<Held>,
    arrived: Vec<Frame>,
    record: Option<Arc<Mutex<Option<Writer>>>>,
    counts: QueueCounts,
    closed: bool,
}

impl Faulty {
    /// Lends what was held back and is due.
    fn due(&mut self, into: &mut Vec<Frame>, most: usize) {
        let start = into.len();
        let now = Instant::now();
        let mut index = 0;
        while into.len() - start < most {
            let Some(held) = self.held.get(index) else {
                break;
            };
            if self.closed || (held.until <= now && held.passes == 0) {
                into.extend(self.held.remove(index).map(|h| h.frame));
            } else {
                index += 1;
            }
        }
    }

    /// A copy of a frame in a buffer of our own.
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let copy = self.own.copy(bytes(frame))?;
        Some(Frame {
            stamp: frame.stamp,
            wire: frame.wire,
            port: frame.port,
            ..copy
        })
    }

    fn meets(&mut self, frame: Frame, into: &mut Vec<Frame>) {
        // Each fault draws for each packet, so that one share does not change what another does.
        let [drop, duplicate, reorder, corrupt] = [
            self.faults.drop,
            self.faults.duplicate,
            self.faults.reorder,
            self.faults.corrupt,
        ]
        .map(|share| self.draws.happens(share));
        let which = self.draws.next();
        if drop {
            self.counts.discarded += 1;
            self.queue.release(&[frame]);
            return;
        }
        if corrupt && frame.end != frame.data {
            flip(&frame, which);
            self.counts.altered += 1;
        }
        if duplicate && let Some(copy) = self.copy(&frame) {
            self.counts.duplicated += 1;
            // It comes with the next burst, so that no more come now than were asked for.
            self.held.push_back(Held {
                frame: copy,
                until: Instant::now() + self.faults.delay,
                passes: 0,
            });
        }
        for held in &mut self.held {
            held.passes = held.passes.saturating_sub(1);
        }
        if !reorder && self.faults.delay.is_zero() {
            into.push(frame);
            return;
        }
        match self.copy(&frame) {
            Some(copy) => {
                self.held.push_back(Held {
                    frame: copy,
                    until: Instant::now() + self.faults.delay,
                    passes: if reorder { 1 + which % PASSED } else { 0 },
                });
                self.counts.altered += u64::from(reorder);
            }
            // More than can be held: lost, as in a queue that is full.
            None => self.counts.discarded += 1,
        }
        self.queue.release(&[frame]);
    }

    fn write(
        &self,
        each: impl Iterator<Item = (u64, u32, u32, Vec<u8>)>,
    ) -> Result<(), WriteError> {
        let Some(Ok(mut record)) = self.record.as_ref().map(|r| r.lock()) else {
            return Ok(());
        };
        let Some(writer) = record.as_mut() else {
            return Ok(());
        };
        for (stamp, port, wire, bytes) in each {
            writer.write(stamp, port, wire, &bytes)?;
        }
        Ok(())
    }
}

fn bytes(frame: &Frame) -> &[u8] {
    let length = frame.end.addr().saturating_sub(frame.data.addr());
    // SAFETY: a frame that was lent to us and not given back (`Queue`).
    unsafe { std::slice::from_raw_parts(frame.data, length) }
}

/// Flips one bit of a packet.
fn flip(frame: &Frame, which: u64) {
    let length = (frame.end.addr() - frame.data.addr()) as u64;
    let at = frame.data.wrapping_add((which / 8 % length) as usize);
    // SAFETY: within a frame that was lent to us and may be written (`Queue`).
    unsafe { *at ^= 1 << (which % 8) };
}

fn stamp(of: u64) -> u64 {
    if of == 0 { crate::clock::now() } else { of }
}

// SAFETY: frames are either those of the queue inside, handed on, or lie in `Buffers` of our own; both
// go back where they came from.
unsafe impl Queue for Faulty {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        before: u64,
    ) -> Result<usize, PortError> {
        let start = into.len();
        self.due(into, most);
        let room = most.saturating_sub(into.len() - start);
        let mut result = Ok(());
        if room > 0 {
            let mut arrived = std::mem::take(&mut self.arrived);
            result = self.queue.receive(&mut arrived, room, before).map(|_| ());
            for frame in arrived.drain(..) {
                self.meets(frame, into);
            }
            self.arrived = arrived;
        }
        if self.record.is_some() {
            let got = into.get(start..).unwrap_or_default();
            let got = got
                .iter()
                .map(|f| (stamp(f.stamp), IN, f.wire, bytes(f).to_vec()));
            self.write(got)?;
        }
        result.map(|()| into.len() - start)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        // A buffer of our own pool is none of the queue's inside, so it is copied there.
        let copies: Vec<_> = match self.record {
            None => Vec::new(),
            Some(_) => {
                let each = packets.iter();
                each.map(|p| (stamp(p.stamp), OUT, p.wire, p.bytes().to_vec()))
                    .collect()
            }
        };
        let taken = self.queue.transmit(packets)?;
        self.write(copies.into_iter().take(taken))?;
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.queue.flush()
    }

    fn release(&mut self, frames: &[Frame]) {
        let own = self.own.pool();
        let (ours, theirs): (Vec<Frame>, Vec<Frame>) = frames.iter().partition(|f| f.pool == own);
        self.own.release(&ours);
        self.queue.release(&theirs);
    }

    fn close(&mut self) {
        self.closed = true;
        self.queue.close();
    }

    fn ended(&self) -> bool {
        self.held.is_empty() && self.queue.ended()
    }

    fn keeps_time(&self) -> bool {
        self.queue.keeps_time()
    }

    fn ready(&mut self, patience: Duration) -> bool {
        self.queue.ready(patience)
    }

    fn next_stamp(&self) -> Option<u64> {
        self.queue.next_stamp()
    }

    fn idle(&self) -> bool {
        self.queue.idle()
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.queue.finish()?;
        // The last worker completes the recording.
        let last = self.record.take().and_then(Arc::into_inner);
        if let Some(Ok(Some(writer))) = last.map(Mutex::into_inner) {
            writer.finish()?;
        }
        Ok(())
    }

    fn kept(&self) -> Option<millrace_traffic::capture::Written> {
        self.queue.kept()
    }

    fn counts(&self) -> QueueCounts {
        QueueCounts {
            discarded: self.counts.discarded,
            duplicated: self.counts.duplicated,
            altered: self.counts.altered,
            ..self.queue.counts()
        }
    }

    fn descriptor(&self) -> Option<i32> {
        // What is held back is due at a time that no descriptor tells.
        if self.held.is_empty() {
            self.queue.descriptor()
        } else {
            None
        }
    }

    fn memory(&self) -> u64 {
        self.queue.memory() + self.own.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lends packets of their own number, and counts what comes back.
    struct Numbers {
        buffers: Buffers,
        next: u32,
        last: u32,
    }

    // SAFETY: frames lie in `Buffers`.
    unsafe impl Queue for Numbers {
        fn receive(
            &mut self,
            into: &mut Vec<Frame>,
            most: usize,
            _: u64,
        ) -> Result<usize, PortError> {
            let start = into.len();
            while self.next < self.last && into.len() - start < most {
                let Some(frame) = self.buffers.copy(&self.next.to_be_bytes()) else {
                    break;
                };
                into.push(frame);
                self.next += 1;
            }
            Ok(into.len() - start)
        }

        fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
            Ok(packets.len())
        }

        fn release(&mut self, frames: &[Frame]) {
            self.buffers.release(frames);
        }

        fn ended(&self) -> bool {
            self.next == self.last
        }
    }

    fn through(options: &str) -> (Vec<Vec<u8>>, QueueCounts) {
        let mut query = Query::parse("x", &format!("y?{options}")).unwrap();
        let faults = Faults::take(&mut query).unwrap();
        query.finish("none").unwrap();
        let port = LivePort {
            queues: vec![Box::new(Numbers {
                buffers: Buffers::new(32, 0, Layout::Pooled),
                next: 0,
                last: 1000,
            })],
            hold: None,
            told: false,
            table: None,
            facts: Vec::new(),
        };
        let mut queue = faults.around(port, "x:y").unwrap().queues.remove(0);
        let (mut got, mut frames) = (Vec::new(), Vec::new());
        while !queue.ended() {
            queue.receive(&mut frames, 32, u64::MAX).unwrap();
            assert!(frames.len() <= 32);
            got.extend(frames.iter().map(|f| bytes(f).to_vec()));
            queue.release(&frames);
            frames.clear();
            if got.len() > 2000 {
                panic!("no end");
            }
            queue.close();
        }
        (got, queue.counts())
    }

    fn numbers() -> Vec<Vec<u8>> {
        (0..1000_u32).map(|n| n.to_be_bytes().to_vec()).collect()
    }

    #[test]
    fn nothing_is_done_that_is_not_asked_for() {
        assert_eq!(through("seed=4"), (numbers(), QueueCounts::default()));
    }

    #[test]
    fn the_same_seed_makes_the_same_faults_and_counts_them() {
        let options = "drop=0.1&duplicate=0.1&corrupt=0.1&seed=7";
        let (got, counts) = through(options);
        assert_eq!(through(options), (got.clone(), counts));
        assert_ne!(through("drop=0.1&duplicate=0.1&corrupt=0.1&seed=8").0, got);
        // 1000 draws of 0.1 are 100, and within 4 standard deviations of 9.5.
        for count in [counts.discarded, counts.duplicated, counts.altered] {
            assert!((62..=138).contains(&count), "{counts:?}");
        }
        let sum = 1000 - counts.discarded + counts.duplicated;
        assert_eq!(got.len() as u64, sum);
    }

    #[test]
    fn reordered_packets_all_arrive() {
        let (mut got, counts) = through("reorder=0.2&seed=1");
        assert!(counts.altered > 100 && got != numbers());
        got.sort();
        assert_eq!(got, numbers());
    }

    #[test]
    fn shares_outside_of_0_to_1_are_refused() {
        for options in ["drop=1.5", "drop=-1", "corrupt=x", "delay=-3", "seed=x"] {
            let mut query = Query::parse("x", &format!("y?{options}")).unwrap();
            assert!(Faults::take(&mut query).is_err(), "{options}");
        }
    }
}
