//! Slow paths: what runs the packets that a function hands over, beside the workers.
//!
//! A function hands a packet over by `HAND_OVER(n)` (include/millrace/verdict.h): it is passed, with a number from 1. A worker whose
//! function has a slow path gives the packet to it, as it is, and the packet is consumed; one that the slow path has no room for is
//! dropped (`slow_path_full`). What comes back leaves the function by a port, and is counted as created: it goes on along the chain.
//!
//! # Order and time
//! What comes back is in the order in which packets were handed over. Over captures a worker takes packets one by one, and what each leads
//! to is there before the next one ([`SlowPath::at_once`]), so that a run gives the bytes of one packet after the other. Between live
//! ports it waits for nothing. Time is that of packets, and passes for the slow path when it has something to do at a time.

use super::chain::End;
use super::turn::Worker;
use crate::account::SlowAccount;
use crate::module::abi;

/// A packet that is handed over.
#[derive(Clone, Copy, Debug)]
pub struct Handed<'a> {
    /// the number with which the function handed it over, from 1
    pub number: u32,
    /// the function's port by which it came
    pub port: u32,
    /// when it came, ns since the epoch
    pub time: u64,
    /// its bytes
    pub bytes: &'a [u8],
}

/// A worker's way to a slow path.
pub trait SlowPath: Send {
    /// Takes a packet; false where there is no room for one of its number.
    fn take(&mut self, packet: &Handed<'_>) -> bool;

    /// It is this time now, ns since the epoch; asked for by [`SlowPath::due`].
    fn pass_time(&mut self, time: u64);

    /// When it has something to do by itself next, ns since the epoch; `u64::MAX` where it has nothing.
    fn due(&self) -> u64;

    /// From now on all that a packet leads to is there when it has been taken, and what time leads to when it has passed.
    fn at_once(&mut self);

    /// Gives packets that came back, in order: the function's port that each leaves by, and its bytes.
    fn back(&mut self, each: &mut dyn FnMut(u16, &[u8]));

    /// Whether packets may come back of those that it has taken.
    fn waits(&self) -> bool;
}

/// A slow path of a function, which all workers have in common.
pub trait SlowPaths: Send + Sync {
    /// A worker's way to it.
    fn open(&self) -> Box<dyn SlowPath>;

    /// What it has counted.
    fn account(&self) -> SlowAccount;
}

/// Bytes of a packet, which lie in its buffer.
///
/// # Safety
/// The descriptor describes a packet as abi.h asks for, in memory that nobody writes while the slice is used.
unsafe fn bytes<'a>(packet: &abi::Packet) -> &'a [u8] {
    let length = packet.end.addr().saturating_sub(packet.data.addr());
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(packet.data, length) }
}

impl Worker {
    /// Whether some function of the chain has a slow path.
    fn has_slow(&self) -> bool {
        self.chain.stages.iter().any(|stage| stage.slow.is_some())
    }

    /// Gives packets of the burst that functions hand over to their slow paths.
    pub(super) fn hand_over(&mut self) {
        if !self.has_slow() {
            return;
        }
        self.slow_time(self.clock);
        let burst = self.descriptors.iter_mut().zip(&self.frames);
        for ((packet, frame), end) in burst.zip(&mut self.chain.ends) {
            if packet.fate != abi::fate::PASS || packet.out == 0 || !frame.holds(packet) {
                continue;
            }
            let stage = self.chain.stages.get_mut(end.stage as usize);
            let Some(slow) = stage.and_then(|stage| stage.slow.as_mut()) else {
                continue;
            };
            let taken = slow.take(&Handed {
                number: packet.out,
                port: packet.port,
                time: packet.time,
                // SAFETY: the queue lends the frame until it is given back, the packet lies within its room (`holds`), and functions
                // are through with it.
                bytes: unsafe { bytes(packet) },
            });
            match taken {
                true => (packet.fate, packet.out) = (abi::fate::CONSUME, 0),
                false => {
                    packet.fate = abi::fate::DROP;
                    *end = End {
                        refused: true,
                        ..*end
                    };
                }
            }
        }
    }

    /// Lets time pass for slow paths that have something to do until then.
    pub(super) fn slow_time(&mut self, time: u64) {
        for slow in self.chain.stages.iter_mut().filter_map(|s| s.slow.as_mut()) {
            if slow.due() <= time {
                slow.pass_time(time);
            }
        }
    }
}
