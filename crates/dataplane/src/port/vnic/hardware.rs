//! A thread that plays the device for some of its queues.
//!
//! It does to memory what a device does over its bus: reads descriptors, writes packets by whole cache
//! lines into the buffers they name, writes descriptors back, reads what is to be sent, writes
//! completions. What it writes is taken out of its processor's own caches where that can be said
//! (CLDEMOTE), as a device writes into the cache that all cores share.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millrace_steer::hybrid::Key;

use super::device::Device;
use super::latency::Latency;
use super::memory;
use super::packets::Packets;
use super::ring::{COPIED, DONE, REPORT, Received, Rings, add, numbered};
use super::schedule::{Next, Schedule, Turn};
use super::settings::Rate;
use super::table::Table;
use super::traffic::{Entry, Line, Traffic};
use crate::clock;
use crate::replica::{Batch, Came, Numbered, Place, Wait};
use crate::worker::wait;

/// Packets that are written before their descriptors are written back, at most.
const BATCH: usize = 32;
/// How often a sequencer without packets looks whether something is due, ns.
const IDLE_NS: f64 = 500_000.0;
/// Packets sent from one queue before the next has its turn.
const SEND: u32 = 64;
/// Turns without work after which a thread without a processor of its own lets others run, among whom
/// the workers may be. One that is pinned never does, since a device does not pause, unless its rate is [`SELDOM`].
const PATIENCE: u32 = 256;
/// Packets a second below which a thread with a processor of its own rests between them, too: two are further apart than a
/// rest is long.
const SELDOM: f64 = 20_000.0;

/// A queue as the device sees it.
struct Side {
    rings: Arc<Rings>,
    index: usize,
    receive_head: u32,
    receive_tail: u32,
    transmit_head: u32,
    /// when each buffer was filled, ticks
    filled: Vec<u64>,
}

/// What a thread is given.
pub struct Work {
    /// the device
    pub device: Arc<Device>,
    /// what it receives
    pub traffic: Arc<Traffic>,
    /// which of it this thread receives
    pub packets: Packets,
    /// this thread's queues, by their numbers
    pub queues: Vec<(usize, Arc<Rings>)>,
    /// those of all threads
    pub all: Arc<[Arc<Rings>]>,
    /// how often the capture is received; none, without end
    pub loops: Option<u64>,
    /// whether packets carry the time
    pub stamps: bool,
    /// where packets come to by their hashes, if that may change
    pub table: Option<Arc<Table>>,
    /// packets longer than this are unfit
    pub room: usize,
    /// where the times from receive to send are counted
    pub latency: Arc<Latency>,
    /// the thread has a processor of its own
    pub pinned: bool,
    /// numbers packets, where the state of the function is replicated: as hardware does, at no cost to the workers
    pub sequencing: Option<Batch>,
}

/// Runs until the device is stopped.
pub fn run(work: Work) {
    let mut thread = Thread::new(work);
    thread.wait_for_workers();
    wait::punctual();
    let mut idle = 0_u32;
    while !thread.work.device.stopped() {
        if thread.turn() {
            idle = 0;
            continue;
        }
        idle = idle.saturating_add(1);
        if idle > PATIENCE && thread.may_rest() {
            wait::rest(idle, Duration::MAX);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// A buffer that was filled, and whose descriptor is not written back.
struct Filled {
    /// the queue, of this thread's
    at: usize,
    /// the descriptor
    position: u32,
    /// of the capture
    entry: usize,
    number: u64,
    /// ns since the epoch, or 0
    stamp: u64,
    /// in the order of rows
    place: Place,
}

struct Thread {
    work: Work,
    sides: Vec<Side>,
    /// number of the first queue
    first: usize,
    schedule: Schedule,
    epoch: u32,
    rate: Option<Rate>,
    /// the number of the first packet that is not received: loops times the capture
    end: u64,
    finished: bool,
    ns_per_tick: f64,
    /// ns since the epoch at tick `origin`
    wall: u64,
    origin: u64,
    batch: Vec<Filled>,
    /// when the sequencer was last asked, ticks
    asked: u64,
    /// periods of the choice of heavy keys that are over for this thread, and the one to whose end it came last
    period: u64,
    arrived: Option<u64>,
}

impl Thread {
    fn new(mut work: Work) -> Self {
        let rate = clock::Rate::start();
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64);
        let origin = clock::ticks();
        let side = |(index, rings): (usize, Arc<Rings>)| Side {
            filled: vec![0; rings.memory.count()],
            rings,
            index,
            receive_head: 0,
            receive_tail: 0,
            transmit_head: 0,
        };
        let sides: Vec<Side> = std::mem::take(&mut work.queues)
            .into_iter()
            .map(side)
            .collect();
        let all = work.traffic.entries.len() as u64;
        let ns_per_tick = rate.ns_per_tick();
        Self {
            first: sides.first().map_or(0, |s| s.index),
            sides,
            schedule: Schedule::new(None, ns_per_tick, origin, 0),
            // Not the device's, so that the first turn begins a schedule.
            epoch: work.device.epoch().wrapping_sub(1),
            rate: None,
            end: work
                .loops
                .map_or(u64::MAX, |loops| loops.saturating_mul(all)),
            finished: false,
            ns_per_tick,
            wall,
            origin,
            batch: Vec::with_capacity(BATCH),
            period: 0,
            arrived: None,
            asked: origin,
            work,
        }
    }

    /// A device whose driver is not up yet receives nothing: nothing is lost before anybody looks. That goes for the queues of other
    /// threads, too: packets of one are rows for the workers of all.
    fn wait_for_workers(&self) {
        let polled = |rings: &Arc<Rings>| rings.driver.polled.load(Ordering::Acquire) != 0;
        while !self.work.all.iter().all(polled) && !self.work.device.stopped() {
            std::thread::yield_now();
        }
    }

    /// Whether it leaves its processor to others where there is nothing to do.
    fn may_rest(&self) -> bool {
        let seldom = match self.rate {
            Some(Rate::PerSecond(rate)) => rate < SELDOM,
            Some(Rate::Taken) | None => false,
        };
        seldom || !self.work.pinned
    }

    /// Receives and sends what there is; false when there was nothing.
    fn turn(&mut self) -> bool {
        let now = clock::ticks();
        if let Some(table) = &self.work.table {
            table.look();
        }
        let received = self.receive(now);
        if received == 0 && self.work.sequencing.is_some() {
            self.beat(now);
        }
        let mut sent = 0;
        for side in &mut self.sides {
            sent += send(side, &self.work.latency);
        }
        received > 0 || sent > 0
    }

    /// Writes due packets into buffers, at most [`BATCH`]; how many were handled, the lost ones too.
    fn receive(&mut self, now: u64) -> usize {
        let device = self.work.device.clone();
        if self.finished || self.sides.iter().any(|s| device.closed(s.index)) {
            return self.finish(now);
        }
        if device.epoch() != self.epoch {
            self.epoch = device.epoch();
            self.rate = device.rate();
            let next = self.work.packets.number().unwrap_or(0);
            self.schedule = Schedule::new(self.rate, self.ns_per_tick, now, next);
        }
        let number = self.work.packets.number().unwrap_or(self.end);
        if number >= self.end {
            return self.finish(now);
        }
        let (due, stalled) = self.schedule.due(now, number);
        if stalled > 0 {
            device.stall(stalled);
        }
        let due = due.min(self.end);
        let next = match self.work.packets.find(due, self.period) {
            Next::Packet(next) => next,
            Next::Border => {
                self.border(now);
                return 0;
            }
            Next::Later => return 0,
            Next::End => return self.finish(now),
        };
        if self.waits(next) {
            return 0;
        }
        let mut stamp = match self.work.stamps || self.work.sequencing.is_some() {
            true => self.wall_at(now),
            false => 0,
        };
        let wait = Wait {
            pinned: self.work.pinned,
            over: &|| device.stopped(),
        };
        if let Some(batch) = &mut self.work.sequencing {
            if !batch.begin(stamp, wait) {
                return 0;
            }
            stamp = batch.places().0;
        }
        let mut handled = 0;
        while handled < BATCH {
            let Next::Packet(turn) = self.work.packets.find(due, self.period) else {
                break;
            };
            if !self.one(turn, now, stamp) {
                break;
            }
            self.work.packets.pass();
            handled += 1;
        }
        self.number(now, wait);
        if self.work.packets.number().is_none_or(|n| n >= self.end) {
            self.finish(now);
        }
        handled
    }

    /// At the end of a period of the choice of heavy keys: says what this thread has counted, and goes on once all have.
    fn border(&mut self, now: u64) {
        if self.arrived != Some(self.period) {
            self.arrived = Some(self.period);
            self.tell(now, false);
        }
        if let (Packets::Dealt(dealt), Some(batch)) =
            (&mut self.work.packets, &self.work.sequencing)
            && batch.periods() > self.period
        {
            self.period = batch.periods();
            dealt.choose(&batch.heavy());
        }
    }

    /// Says what this thread has counted in a period that ends, or before it `leaves`; chooses where it is the last to say so.
    fn tell(&mut self, now: u64, leaves: bool) {
        let time = self.wall_at(now);
        let (Packets::Dealt(dealt), Some(batch)) =
            (&mut self.work.packets, &mut self.work.sequencing)
        else {
            return;
        };
        if !dealt.chooses() {
            return;
        }
        let (device, traffic) = (&self.work.device, &self.work.traffic);
        let wait = Wait {
            pinned: self.work.pinned,
            over: &|| device.stopped(),
        };
        let counted = dealt.counted();
        let frame = |key: Key| traffic.of(dealt.whose().entry(key));
        match leaves {
            true => batch.leave((counted, self.arrived), (time, &frame), wait),
            false => batch.arrive(counted, (time, &frame), wait),
        }
    }

    /// Whether the next packet has to wait for a buffer, so that there is nothing to number.
    fn waits(&mut self, next: Turn) -> bool {
        let Some(queue) = next.queue.filter(|_| self.rate == Some(Rate::Taken)) else {
            return false;
        };
        let at = (queue as usize).wrapping_sub(self.first);
        self.sides.get_mut(at).is_some_and(|side| {
            if side.receive_head == side.receive_tail {
                side.receive_tail = side.rings.receive_tail.0.load(Ordering::Acquire);
            }
            side.receive_head == side.receive_tail
        })
    }

    /// Ns since the epoch at a tick.
    fn wall_at(&self, now: u64) -> u64 {
        let ticks = now.saturating_sub(self.origin);
        self.wall + (ticks as f64 * self.ns_per_tick) as u64
    }

    /// Gives replicas what is due while no packet comes: timers, edits.
    fn beat(&mut self, now: u64) {
        let since = now.saturating_sub(self.asked) as f64 * self.ns_per_tick;
        if since < IDLE_NS {
            return;
        }
        self.asked = now;
        let time = self.wall_at(now);
        let device = self.work.device.clone();
        let wait = Wait {
            pinned: self.work.pinned,
            over: &|| device.stopped(),
        };
        if let Some(batch) = &mut self.work.sequencing {
            // Behind the packets of all threads.
            batch.idle(time, device.over(), wait);
        }
    }

    /// Writes the batch back; where a sequencer numbers packets, once they have their numbers.
    fn number(&mut self, now: u64, wait: Wait<'_>) {
        let Some(mut batch) = self.work.sequencing.take() else {
            return self.write_back();
        };
        let numbered = batch.number(|at| self.came(at), wait);
        batch.lines().for_each(demote);
        let (stamp, places) = batch.places();
        for (filled, place) in self.batch.iter_mut().zip(places) {
            (filled.stamp, filled.place) = (stamp, *place);
        }
        self.work.sequencing = Some(batch);
        if let Some(numbered) = numbered {
            self.in_turn(now, numbered, wait);
        }
        // What the end of the device has left.
        self.batch.clear();
    }

    /// Writes a batch back in the order of the numbers of all.
    fn in_turn(&mut self, now: u64, numbered: Numbered, wait: Wait<'_>) {
        self.asked = now;
        let Some(batch) = self.work.sequencing.take() else {
            return;
        };
        if batch.publish(numbered, wait) {
            self.write_back();
            batch.handed(numbered, wait);
        }
        self.work.sequencing = Some(batch);
    }

    /// A packet of the batch, as a sequencer sees it.
    fn came(&self, at: usize) -> Came<'_> {
        let filled = self.batch.get(at);
        let entry = filled.and_then(|f| self.work.traffic.entries.get(f.entry));
        Came {
            frame: entry.map_or(&[], |e| self.work.traffic.bytes(e)),
            port: entry.map_or(0, |e| u32::from(e.port)),
            number: filled.map_or(0, |f| f.number),
        }
    }

    fn finish(&mut self, now: u64) -> usize {
        if std::mem::replace(&mut self.finished, true) {
            return 0;
        }
        self.tell(now, true);
        for side in &self.sides {
            self.work.device.finish(side.index);
        }
        0
    }

    /// Writes one packet into its buffer, or loses it; false when it has to wait for a buffer.
    fn one(&mut self, turn: Turn, now: u64, stamp: u64) -> bool {
        let Some(entry) = self.work.traffic.entries.get(turn.entry) else {
            return true;
        };
        let queue = match (&self.work.table, turn.queue) {
            (_, Some(queue)) => queue as usize,
            (Some(table), None) if entry.hash != 0 => table.of_hash(entry.hash) as usize,
            (_, None) => entry.queue as usize,
        };
        let at = queue.wrapping_sub(self.first);
        let Some(side) = self.sides.get_mut(at) else {
            return true;
        };
        if usize::from(entry.length) > self.work.room {
            add(&side.rings.device.unfit, 1);
            return true;
        }
        if side.receive_head == side.receive_tail {
            side.receive_tail = side.rings.receive_tail.0.load(Ordering::Acquire);
            if side.receive_head == side.receive_tail {
                if self.rate == Some(Rate::Taken) {
                    return false;
                }
                add(&side.rings.device.missed, 1);
                return true;
            }
        }
        let position = side.receive_head;
        side.receive_head = position.wrapping_add(1);
        let Some(descriptor) = side.rings.receive(position) else {
            return true;
        };
        let address = descriptor.address.load(Ordering::Relaxed) as usize;
        let Some(buffer) = side.rings.memory.index(address) else {
            return true;
        };
        let lines = usize::from(entry.length).div_ceil(size_of::<Line>()).max(1);
        let source = self.work.traffic.lines.get(entry.line..entry.line + lines);
        let to = std::ptr::with_exposed_provenance_mut::<Line>(address);
        for (index, line) in source.unwrap_or(&[]).iter().enumerate() {
            // SAFETY: the driver put this buffer into the ring and leaves it alone until the
            // descriptor is written back. `index` has shown that the address lies in the queue's
            // memory; the driver gives addresses a headroom into the buffer, which is a multiple of a
            // line, and the packet's lines fit behind it, since it is not longer than `room`, which
            // leaves a tailroom of more than a line.
            unsafe { to.add(index).write(*line) };
            demote(to.wrapping_add(index).cast());
        }
        if let Some(filled) = side.filled.get_mut(buffer) {
            *filled = now;
        }
        if let Some(batch) = &mut self.work.sequencing {
            let came = Came {
                frame: self.work.traffic.bytes(entry),
                port: u32::from(entry.port),
                number: turn.number,
            };
            batch.add(came, turn.sharded);
        }
        self.batch.push(Filled {
            at,
            position,
            entry: turn.entry,
            number: turn.number,
            stamp,
            place: Place::default(),
        });
        true
    }

    /// Tells the drivers of the packets written since the last time.
    fn write_back(&mut self) {
        for filled in self.batch.drain(..) {
            let Some(side) = self.sides.get(filled.at) else {
                continue;
            };
            let entry = self.work.traffic.entries.get(filled.entry);
            if let (Some(descriptor), Some(entry)) = (side.rings.receive(filled.position), entry) {
                write_descriptor(descriptor, entry, filled.stamp, filled.number);
                let status = DONE | filled.place.word();
                descriptor.status.store(status, Ordering::Release);
            }
            add(&side.rings.device.delivered, 1);
        }
    }
}

fn write_descriptor(descriptor: &super::ring::Receive, entry: &Entry, stamp: u64, number: u64) {
    let received = Received {
        hash: entry.hash,
        length: entry.length,
        port: entry.port,
    };
    descriptor.address.store(received.pack(), Ordering::Relaxed);
    descriptor
        .wire
        .store(numbered(entry.wire, number), Ordering::Relaxed);
    descriptor.stamp.store(stamp, Ordering::Relaxed);
}

/// Sends what a queue has to send, at most [`SEND`] packets.
fn send(side: &mut Side, latency: &Latency) -> u32 {
    let tail = side.rings.transmit_tail.0.load(Ordering::Acquire);
    let count = tail.wrapping_sub(side.transmit_head).min(SEND);
    if count == 0 {
        return 0;
    }
    for ahead in 0..count {
        if let Some(descriptor) = side.rings.transmit(side.transmit_head.wrapping_add(ahead)) {
            let address = descriptor.address.load(Ordering::Relaxed) as usize;
            memory::prefetch(std::ptr::with_exposed_provenance(address));
        }
    }
    let (mut bytes, now) = (0, clock::ticks());
    for _ in 0..count {
        let position = side.transmit_head;
        side.transmit_head = position.wrapping_add(1);
        let Some(descriptor) = side.rings.transmit(position) else {
            continue;
        };
        let command = descriptor.command.load(Ordering::Relaxed);
        let address = descriptor.address.load(Ordering::Relaxed) as usize;
        let length = command as u32;
        let buffer = side.rings.memory.index(address);
        if let Some(buffer) = buffer {
            read(address, length as usize);
            bytes += u64::from(length);
            if command & COPIED == 0 {
                let filled = side.filled.get(buffer).copied().unwrap_or(now);
                latency.add(now.saturating_sub(filled));
            }
        }
        if command & REPORT != 0 {
            descriptor.command.store(command | DONE, Ordering::Release);
        }
    }
    side.rings
        .transmit_head
        .0
        .store(side.transmit_head, Ordering::Release);
    add(&side.rings.device.sent, u64::from(count));
    add(&side.rings.device.sent_bytes, bytes);
    count
}

/// Reads a packet, a word of each of its lines.
#[inline]
fn read(address: usize, length: usize) {
    for offset in (0..length).step_by(size_of::<Line>()) {
        let byte = std::ptr::with_exposed_provenance::<u8>(address + offset);
        // SAFETY: the driver put this packet into the ring and leaves its buffer alone until it sees
        // the completion; `index` has shown that it begins in the queue's memory, and a packet does
        // not reach beyond its buffer. Volatile: the value is of no use, the reading is.
        unsafe { byte.read_volatile() };
    }
}

/// Moves a line towards the cache that all cores share; where the processor cannot, nothing happens.
#[inline]
fn demote(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: CLDEMOTE is a hint that changes no memory, and in the encoding space of hints: a
    // processor that does not know it does nothing.
    unsafe {
        core::arch::asm!("cldemote [{0}]", in(reg) address, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
