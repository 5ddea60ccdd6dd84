//! Counters that one worker writes and anybody reads.
//!
//! Each worker has lines of its own, so that its stores disturb nobody; a reader only pulls a copy of
//! a line now and then. Only the owner writes, so a load and a store make an addition: no locked
//! instruction stands on the packet path. Counters are read one by one: a reader may see a packet
//! counted as read whose fate is not yet counted, never the other way for long.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::classes::away::Refusal;

/// Counters a line: two cache lines of 64 bytes, since processors fetch them in pairs.
const LINE: usize = 16;

#[repr(align(128))]
#[derive(Default)]
struct Line([AtomicU64; LINE]);

/// The counters of one worker.
pub struct Counters {
    lines: Box<[Line]>,
}

impl Counters {
    /// `count` counters, all zero.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let lines = (0..count.div_ceil(LINE)).map(|_| Line::default());
        Self {
            lines: lines.collect(),
        }
    }

    fn at(&self, index: usize) -> Option<&AtomicU64> {
        self.lines.get(index / LINE)?.0.get(index % LINE)
    }

    /// Adds to a counter; only the worker that owns them may.
    #[inline]
    pub(super) fn add(&self, index: usize, value: u64) {
        if let Some(counter) = self.at(index) {
            let sum = counter.load(Ordering::Relaxed).wrapping_add(value);
            counter.store(sum, Ordering::Relaxed);
        }
    }

    /// Sets a counter; only the worker that owns them may.
    #[inline]
    pub(super) fn set(&self, index: usize, value: u64) {
        if let Some(counter) = self.at(index) {
            counter.store(value, Ordering::Relaxed);
        }
    }

    /// What a counter says now; it is 0 then.
    pub(super) fn take(&self, index: usize) -> u64 {
        self.at(index).map_or(0, |c| c.swap(0, Ordering::Relaxed))
    }

    /// What a counter says now; 0 where there is none.
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.at(index).map_or(0, |c| c.load(Ordering::Relaxed))
    }
}

/// What is counted for each port of the function, in this order.
#[derive(Clone, Copy)]
pub enum OfPort {
    /// packets that came in here
    Read,
    /// their bytes
    ReadBytes,
    /// of these, sent out somewhere
    Forwarded,
    /// of these, dropped
    Dropped,
    /// of these, passed to the host
    Passed,
    /// of these, consumed
    Consumed,
    /// of these, aborted
    Aborted,
    /// packets sent out here
    Sent,
    /// their bytes
    SentBytes,
}
const OF_PORT: usize = 9;

/// What is counted for each queue.
#[derive(Clone, Copy)]
pub enum OfQueue {
    /// see [`crate::port::QueueCounts`]
    Missed,
    /// as above
    Unfit,
    /// as above
    Failed,
    /// as above
    Discarded,
    /// as above
    Duplicated,
    /// as above
    Altered,
}
const OF_QUEUE: usize = 6;

/// What is counted for each function of the chain.
#[derive(Clone, Copy)]
pub enum OfStage {
    /// packets that went through it
    Packets,
    /// calls
    Bursts,
    /// ticks of [`crate::clock`] inside it
    Ticks,
    /// times that its timers fired
    Timers,
}

impl OfStage {
    /// How many of these counts an element has; those of its drop reasons stand behind them (`lives.rs`).
    pub const COUNT: usize = 4;
}

/// What is counted once.
#[derive(Clone, Copy)]
pub enum Once {
    /// copies made by floods
    Created,
    /// bursts received
    Bursts,
    /// packets received
    Packets,
    /// packets stamped earlier than one before
    OutOfOrder,
    /// turns in which nothing came
    Idle,
    /// insertions that found the worker's part of a divided object full
    Full,
    /// the heaviest entry of an indirection table, as `entries.rs` packs it
    Heaviest,
    /// rows of other workers' packets that were applied, where state is replicated
    Replayed,
    /// packets that committed beside others, where packets are transactions
    Commits,
    /// attempts that did not commit
    Aborts,
    /// attempts before which a packet took all words that it had met
    Holds,
    /// packets that ran alone
    Alone,
    /// waits for other workers' packets before an entry's expiry was decided
    Graces,
    /// the number of the last row that was applied, where state is replicated
    Applied,
}
const ONCE: usize = 14;

/// Reasons that are the host's and not the program's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// the program aborted
    Aborted,
    /// sent to a port that does not exist
    NoSuchPort,
    /// flooded where there is no other port
    NoOtherPort,
    /// the transmit queue had no room
    TxFull,
    /// the port that it was to leave at has failed
    PortFailed,
    /// it went round in the chain
    ChainLoop,
    /// flooded within the chain, to more than one port
    ChainFlood,
    /// a reason that the program did not declare
    Undeclared,
    /// longer than a function takes, and so seen by none
    Oversize,
    /// handed over to a slow path that had no room for it
    SlowFull,
    /// of several machines: this one may not accept packets now
    NoLease,
    /// no machine has its bucket
    NoOwner,
    /// longer than what goes between machines
    PeerMtu,
    /// the way to the machine that has its bucket took no more
    PeerFull,
    /// it was sent on before, and its bucket is not here either
    PeerCircle,
    /// its bucket was on its way between machines, and as many packets as may wait did so
    PeerWaits,
}

impl From<Refusal> for Host {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::NoLease => Self::NoLease,
            Refusal::NoOwner => Self::NoOwner,
            Refusal::TooLong => Self::PeerMtu,
            Refusal::Full => Self::PeerFull,
            Refusal::Circle => Self::PeerCircle,
            Refusal::Waits => Self::PeerWaits,
        }
    }
}

/// Their names in an account.
pub const HOST_REASONS: [&str; 16] = [
    crate::account::ABORTED,
    crate::account::NO_SUCH_PORT,
    crate::account::NO_OTHER_PORT,
    "tx_full",
    "port_failed",
    "chain_loop",
    "chain_flood",
    "undeclared_reason",
    crate::account::OVERSIZE,
    crate::account::SLOW_FULL,
    "no_lease",
    "no_owner",
    "peer_mtu",
    "peer_full",
    "peer_circle",
    "peer_waits",
];

/// Where each counter stands.
#[derive(Clone, Debug)]
pub struct Places {
    ports: usize,
    queues: usize,
}

impl Places {
    /// For this many ports and queues.
    #[must_use]
    pub fn new(ports: usize, queues: usize) -> Self {
        Self { ports, queues }
    }

    /// How many ports there are.
    #[must_use]
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// How many counters there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.queue(self.queues, OfQueue::Missed)
    }

    /// The place of a count of a port.
    #[must_use]
    pub fn port(&self, port: usize, what: OfPort) -> usize {
        ONCE + HOST_REASONS.len() + port * OF_PORT + what as usize
    }

    /// The place of a count of a queue.
    #[must_use]
    pub fn queue(&self, queue: usize, what: OfQueue) -> usize {
        self.port(self.ports, OfPort::Read) + queue * OF_QUEUE + what as usize
    }

    /// The place of a count that there is once.
    #[must_use]
    pub fn once(&self, what: Once) -> usize {
        what as usize
    }

    /// The place of the count of a reason of the host's.
    #[must_use]
    pub fn host(&self, reason: Host) -> usize {
        ONCE + reason as usize
    }
}

/// Packets dropped for reasons that the program did not declare, by worker and the reason's number. A rare thing.
#[derive(Default)]
pub struct Numbered(Mutex<BTreeMap<(usize, u32), u64>>);

impl Numbered {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(usize, u32), u64>> {
        // Counts that a panicking thread has left are as whole as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one of a worker's.
    #[cold]
    pub fn add(&self, worker: usize, reason: u32) {
        *self.lock().entry((worker, reason)).or_default() += 1;
    }

    /// Those of these workers, by name.
    pub fn told(&self, workers: &[usize]) -> Vec<(String, u64)> {
        let all = self.lock();
        let own = all
            .iter()
            .filter(|((worker, _), _)| workers.contains(worker));
        own.map(|((_, reason), n)| (format!("reason_{reason}"), *n))
            .collect()
    }
}

/// Counts of packets of a run over captures that no worker gets to see; the sequencer's.
pub struct Ingress {
    counters: Counters,
    places: Places,
}

impl Ingress {
    /// Of a run with this many ports.
    #[must_use]
    pub fn new(ports: usize) -> Self {
        let places = Places::new(ports, 0);
        Self {
            counters: Counters::new(places.count()),
            places,
        }
    }

    /// How many ports the function has.
    #[must_use]
    pub fn ports(&self) -> usize {
        self.places.ports()
    }

    /// A packet was stamped earlier than one before it.
    #[cold]
    pub fn late(&self) {
        self.counters.add(self.places.once(Once::OutOfOrder), 1);
    }

    /// A packet of this many bytes is longer than a function takes.
    #[cold]
    pub fn oversize(&self, port: u32, bytes: usize) {
        let of = |what| self.places.port(port as usize, what);
        self.counters.add(of(OfPort::Read), 1);
        self.counters.add(of(OfPort::ReadBytes), bytes as u64);
        self.counters.add(of(OfPort::Dropped), 1);
        self.counters.add(self.places.host(Host::Oversize), 1);
    }

    /// What a counter says now.
    pub(super) fn get(&self, place: usize) -> u64 {
        self.counters.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_count_has_a_place_of_its_own() {
        let places = Places::new(3, 2);
        let mut all = vec![
            places.once(Once::Created),
            places.once(Once::Idle),
            places.host(Host::Aborted),
            places.host(Host::Undeclared),
        ];
        for port in 0..3 {
            all.extend([
                places.port(port, OfPort::Read),
                places.port(port, OfPort::SentBytes),
            ]);
        }
        for queue in 0..2 {
            all.extend([
                places.queue(queue, OfQueue::Missed),
                places.queue(queue, OfQueue::Altered),
            ]);
        }
        let unique: HashSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        assert_eq!(all.iter().max(), Some(&(places.count() - 1)));
    }

    #[test]
    fn counters_add_and_know_their_bounds() {
        let counters = Counters::new(17);
        counters.add(16, 2);
        counters.add(16, 3);
        counters.add(1000, 1);
        assert_eq!((counters.get(16), counters.get(1000)), (5, 0));
    }
}
