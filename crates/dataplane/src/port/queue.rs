//! Queues: what a worker receives from and transmits to, a burst at a time.
//!
//! A port has one receive and one transmit queue for each worker; together they are a [`Queue`], and
//! nobody but that worker touches them. A queue *lends* the packets it receives: a [`Frame`] points
//! into the port's own memory, the function changes the packet there, and the worker gives every
//! frame back exactly once, either by [`Queue::release`] to the queue that lent it, or by a transmit
//! that keeps the buffer (`Departure::kept`), which only a queue of the same pool may do.
//!
//! One turn of a worker over its queues:
//!
//! ```text
//! for each queue: receive(frames, burst, before)
//! the functions run over the frames
//! for each queue: transmit(departures) -> how many it took, from the front; the rest is `tx_full`
//! for each queue: flush()
//! for each queue: release(the frames it lent that no transmit kept)
//! ```

use std::os::fd::RawFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millrace_steer::Steering;

use super::PortError;
use crate::classes::Classes;
use crate::classes::away::Refusal;
use crate::classes::table::Indirection;
use crate::module::abi;
use crate::replica::{Place, Sequencing};
use crate::runner::Lane;

/// Identifies the memory that a buffer belongs to. Queues with the same pool may pass buffers on
/// without copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool(pub u64);

impl Pool {
    /// That of no queue: nobody passes such a buffer on.
    pub(crate) const NONE: Self = Self(0);

    /// A pool unlike any other of this process.
    #[must_use]
    pub fn fresh() -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A received packet, lent by a queue until it is given back.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// first byte of the packet
    pub data: *mut u8,
    /// one past its last byte; at most 65535 bytes lie between
    pub end: *mut u8,
    /// the lowest address that the packet may grow to, at most `data`
    pub floor: *mut u8,
    /// the highest address that it may grow to, at least `end`
    pub ceiling: *mut u8,
    /// when it came, ns since the epoch; 0 where the port does not stamp: then it has the time of the
    /// worker's burst
    pub stamp: u64,
    /// its length on the wire, bytes; more than there are where a capture cut it
    pub wire: u32,
    /// the port of the function that it enters at ([`LiveOptions::port`], unless the queue feeds
    /// several ports)
    pub port: u32,
    /// its packet class, where packets are handed to workers by class ([`crate::classes`]); else 0
    pub class: u16,
    /// as the device hashed it by what it was told ([`LiveOptions::steering`]); 0 where it was told nothing, or hashed nothing
    pub hash: u32,
    /// how many machines have sent it on before it came here ([`crate::classes::away`])
    pub hops: u8,
    /// the memory that it lies in
    pub pool: Pool,
    /// which buffer of that memory: the queue's own number
    pub buffer: u64,
}

/// What a sequencer says of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequenced {
    /// its place in the order of rows
    pub place: Place,
    /// its ingress number, over all workers
    pub number: u64,
}

/// A packet to transmit.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// first byte
    pub data: *const u8,
    /// bytes, at most 65535 and the rooms around a frame
    pub length: u32,
    /// its length on the wire, bytes: `length`, and what a capture cut off
    pub wire: u32,
    /// ns since the epoch: when it came in
    pub stamp: u64,
    /// the port of the function that it leaves at
    pub port: u32,
    /// the memory that it lies in
    pub pool: Pool,
    /// which buffer of that memory
    pub buffer: u64,
    /// whether the buffer may be kept: false where the packet has to leave at several ports
    pub may_keep: bool,
    /// set by a transmit that keeps the buffer; otherwise the bytes were copied or are on their way
    pub kept: bool,
}

// SAFETY: addresses, and who may use the memory behind them is said by `Queue`: whoever holds the frame.
unsafe impl Send for Frame {}

impl Frame {
    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn length(&self) -> usize {
        self.end.addr().saturating_sub(self.data.addr())
    }

    /// Whether the packet lies where its buffer is. A checked program cannot set other bounds.
    pub(crate) fn holds(&self, packet: &abi::Packet) -> bool {
        let (data, end) = (packet.data.addr(), packet.end.addr());
        self.floor.addr() <= data && data <= end && end <= self.ceiling.addr()
    }
}

impl Departure {
    /// The packet's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `data` and `length` lie within a frame that a queue lent and that is not given back
        // while its departures exist (the worker's order of work, see the module's comment).
        unsafe { std::slice::from_raw_parts(self.data, self.length as usize) }
    }
}

/// What a queue has counted beyond what its worker sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// packets that the port lost before anybody could receive them, as far as it knows
    pub missed: u64,
    /// packets that came and could not be taken: too long for a buffer, or of a kind that the port
    /// cannot present
    pub unfit: u64,
    /// packets that a transmit took and the device then refused
    pub failed: u64,
    /// packets that a fault made on purpose: dropped, on the way in or out
    pub discarded: u64,
    /// packets that a fault made on purpose: added
    pub duplicated: u64,
    /// packets that a fault made on purpose: damaged, or put behind others
    pub altered: u64,
}

/// One receive and one transmit queue of a port, used by one worker.
///
/// # Safety
/// Whoever implements this promises for each [`Frame`] it lends: `floor <= data <= end <= ceiling`,
/// all within memory that stays mapped and readable and writable until the frame is given back, and
/// that nobody else relies on meanwhile; frames lent at the same time do not overlap.
pub unsafe trait Queue: Send {
    /// Appends at most `most` packets to `into` and says how many; 0 when there are none now. A port
    /// whose packets carry their own time lends none stamped at or after `before` (ns since the
    /// epoch). Never waits, unless it is the worker's only one.
    ///
    /// # Errors
    /// When the port has failed and nothing more will come.
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        before: u64,
    ) -> Result<usize, PortError>;

    /// Of each packet that `receive` lent last, its place in the order of rows and its number, where a sequencer before the
    /// port gives them ([`LiveOptions::sequencing`]); empty where there is none. Their stamps are the sequencer's then.
    fn sequenced(&self) -> &[Sequenced] {
        &[]
    }

    /// Packets that it received and no worker gets, since the last call: the port that they came in at, why, how many, and their bytes.
    fn refused(&mut self, each: &mut dyn FnMut(u32, Refusal, u64, u64)) {
        let _ = each;
    }

    /// Takes packets to send, in order and from the front, and says how many; fewer than there are
    /// when the queue is full. Never waits.
    ///
    /// # Errors
    /// When the port has failed and takes nothing more.
    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError>;

    /// Tells the device what was put into its rings, and takes back what it has finished. Called once
    /// a turn, with or without packets.
    ///
    /// # Errors
    /// When the port has failed.
    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// The most frames that can be lent at a time, where there is such a bound: that of its buffers. Whoever passes them on has room for all.
    fn lends(&self) -> Option<usize> {
        None
    }

    /// Takes back frames that this queue lent.
    fn release(&mut self, frames: &[Frame]);

    /// Stops receiving: what the device has already delivered may still be lent, nothing newer. After
    /// this a `receive` of 0 says that all is in; it may wait some milliseconds for what the device has
    /// and has not yet handed over.
    fn close(&mut self) {}

    /// Whether nothing will ever come from here again.
    fn ended(&self) -> bool {
        false
    }

    /// Whether its packets carry the time that functions see. Otherwise their stamps only say when they
    /// came, and functions see the worker's clock, which may be later.
    fn keeps_time(&self) -> bool {
        false
    }

    /// Whether the next packet, or that there is none, is known, for ports whose packets carry their own time; waits
    /// for it up to `patience`. A run begins with the time of its first packet.
    fn ready(&mut self, patience: Duration) -> bool {
        let _ = patience;
        true
    }

    /// The stamp of the packet that the next `receive` would lend, for ports whose packets carry their
    /// own time; none where the worker's clock counts.
    fn next_stamp(&self) -> Option<u64> {
        None
    }

    /// The queue as a way to the sequencer of a run over captures, if it is that.
    fn lane(&mut self) -> Option<&mut Lane> {
        None
    }

    /// Whether everything that was taken for sending has left, or never will. Workers wait a bounded
    /// time for this at the end.
    fn idle(&self) -> bool {
        true
    }

    /// Completes the port's work after the last flush, and says what it has kept, for ports that keep
    /// packets.
    ///
    /// # Errors
    /// When something that was taken could not be kept after all.
    fn finish(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// What is known to be kept, for ports that keep packets (files).
    fn kept(&self) -> Option<millrace_traffic::capture::Written> {
        None
    }

    /// What it has counted.
    fn counts(&self) -> QueueCounts {
        QueueCounts::default()
    }

    /// A descriptor that becomes readable when packets come, for a worker that has nothing to do;
    /// none when the worker should look again without sleeping.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Bytes of memory that it keeps resident.
    fn memory(&self) -> u64 {
        0
    }
}

/// What opens a live port beyond its word.
#[derive(Clone, Copy)]
pub struct LiveOptions<'a> {
    /// the port of the function, for [`Frame::port`]
    pub port: u32,
    /// how many queues: one for each worker, at least 1
    pub queues: u32,
    /// packets a burst
    pub burst: usize,
    /// rounds over a source that can begin again; none, without end
    pub loops: Option<u64>,
    /// raised when the process is asked to stop
    pub stop: &'static AtomicBool,
    /// for each port of the function, who owns the packets that come in there; none: whoever gets them
    pub steering: Option<&'a [Steering]>,
    /// packets are handed to workers by class; none: they are not. Comes before `steering`
    pub classes: Option<&'a Arc<Classes>>,
    /// numbers the packets of all queues, where the state of the function is replicated
    pub sequencing: Option<&'a Arc<Mutex<Sequencing>>>,
}

impl LiveOptions<'_> {
    /// Of one queue of port 0, without end; whoever gets a packet owns it.
    #[must_use]
    pub const fn of_one_queue(burst: usize, stop: &'static AtomicBool) -> Self {
        Self {
            port: 0,
            queues: 1,
            burst,
            loops: None,
            stop,
            steering: None,
            classes: None,
            sequencing: None,
        }
    }
}

/// A live port, opened.
pub struct LivePort {
    /// one for each worker, in their order
    pub queues: Vec<Box<dyn Queue>>,
    /// what holds the port open besides the queues (an attached program, an interface that it made);
    /// dropped after them
    pub hold: Option<Box<dyn Send>>,
    /// what a reader of the account should know, a phrase each: "zero copy", "RSS over 2 queues"
    pub facts: Vec<String>,
    /// whether the device does the hash of [`LiveOptions::steering`] by itself
    pub told: bool,
    /// the device's table, where it can be changed; buckets of [`LiveOptions::classes`]
    pub table: Option<Arc<dyn Indirection>>,
}

/// Opens a live port: the word behind the colon.
pub type OpenLive = fn(&str, &LiveOptions) -> Result<LivePort, PortError>;
