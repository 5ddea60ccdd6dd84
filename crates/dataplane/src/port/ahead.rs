//! A sequencer in software: a core ahead of the workers receives from all ports, numbers packets, and hands them out; what workers send goes
//! back through it.
//!
//! It is for ports whose device numbers nothing (`afxdp:`, `dpdk:`, `afpacket:`, `tap:`). All ports of a function have one such core, since
//! one sequencer orders all of its packets. Each packet is copied twice and passes two locks: this gives replicas a function on any
//! port, not speed; the core pays dispatch for every packet, so that no rate is above 1 / (d + row) (`millrace_plan::cost`).
//!
//! A packet that finds its worker's queue full is lost (`missed`); its row is not, as in the software NIC.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::handover::Bell;
use super::{Buffers, Departure, Frame, LivePort, Pool, PortError, Queue, QueueCounts, Sequenced};
use crate::clock;
use crate::packet::Layout;
use crate::replica::{Came, Sequencing};

/// Packets that wait for a worker, and those that wait to be sent, at most.
const DEPTH: usize = 4096;
/// Packets that are numbered at a time.
const BATCH: usize = 64;
/// How long it sleeps where nothing comes and nothing is to be sent.
const NAP: Duration = Duration::from_micros(50);
/// How often it looks where no packet comes whether a timer or an edit is due.
const IDLE: Duration = Duration::from_micros(500);
/// How often it asks its ports what they have counted.
const COUNT: Duration = Duration::from_millis(50);

/// A port that it receives from, opened with one queue.
pub struct Behind {
    /// the port of the function
    pub port: u32,
    /// its word
    pub word: String,
    /// the port
    pub live: LivePort,
}

/// A packet for a worker.
struct Handed {
    bytes: Vec<u8>,
    stamp: u64,
    wire: u32,
    port: u32,
    sequenced: Sequenced,
}

/// A packet to send.
struct Out {
    bytes: Vec<u8>,
    stamp: u64,
    wire: u32,
    port: u32,
}

/// What the core and the workers have in common.
struct Common {
    /// by worker
    handed: Vec<Mutex<VecDeque<Handed>>>,
    bells: Vec<Bell>,
    missed: Vec<AtomicU64>,
    out: Mutex<VecDeque<Out>>,
    /// packets that workers gave and no device has taken
    unsent: AtomicU64,
    /// some worker takes nothing more
    closed: AtomicBool,
    /// nothing more comes
    finished: AtomicBool,
    /// the core is to end
    stop: AtomicBool,
    /// of all devices
    counts: Mutex<QueueCounts>,
    memory: AtomicU64,
    /// a device has failed; the first worker that looks tells it
    failed: Mutex<Option<PortError>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panicking thread has left is as whole as any.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a sequencer ahead of these ports, for so many workers with bursts of `burst` packets; the queue of worker `i` is the `i`th.
///
/// # Errors
/// The system gives no thread, or no descriptors to wait by.
pub fn ahead(
    behind: Vec<Behind>,
    (workers, burst): (usize, usize),
    sequencing: &Arc<Mutex<Sequencing>>,
) -> Result<LivePort, PortError> {
    let words: Vec<String> = behind.iter().map(|b| b.word.clone()).collect();
    let word = words.join(", ");
    let failed = |what: String| PortError::Live {
        word: word.clone(),
        what,
        help: "close what this process does not need, or ask for another strategy".into(),
    };
    let bells = (0..workers).map(|_| Bell::new(None));
    let common = Arc::new(Common {
        handed: (0..workers).map(|_| Mutex::default()).collect(),
        bells: bells
            .collect::<Result<_, _>>()
            .map_err(|e| failed(format!("no descriptor to wait by: {e}")))?,
        missed: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        out: Mutex::default(),
        unsent: AtomicU64::new(0),
        closed: AtomicBool::new(false),
        finished: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        counts: Mutex::default(),
        memory: AtomicU64::new(0),
        failed: Mutex::default(),
    });
    let mut facts = vec![format!(
        "a core ahead of {workers} workers receives from {word} and numbers packets: function, not speed (docs/replication.md)"
    )];
    let (mut inner, mut holds) = (Vec::new(), Vec::new());
    for mut port in behind {
        facts.append(&mut port.live.facts);
        holds.extend(port.live.hold.take());
        inner.extend(port.live.queues.into_iter().map(|queue| (port.port, queue)));
    }
    let mut core = Core {
        inner,
        common: common.clone(),
        sequencing: sequencing.clone(),
        number: 0,
        unsent: VecDeque::new(),
        asked: Instant::now(),
        counted: Instant::now(),
        closed: false,
    };
    let thread = std::thread::Builder::new().name("sequencer".into());
    let thread = thread.spawn(move || core.run());
    let thread = thread.map_err(|e| failed(format!("no thread: {e}")))?;
    let queues = (0..workers).map(|worker| {
        let side = Side {
            common: common.clone(),
            worker,
            buffers: Buffers::new(4 * burst.max(1), 0, Layout::Pooled),
            sequenced: Vec::new(),
        };
        Box::new(side) as Box<dyn Queue>
    });
    Ok(LivePort {
        queues: queues.collect(),
        hold: Some(Box::new(Holding {
            common,
            thread: Some(thread),
            _ports: holds,
        })),
        facts,
        told: true,
        table: None,
    })
}

/// Ends the core when it is dropped, then what holds its ports.
struct Holding {
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
    _ports: Vec<Box<dyn Send>>,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The core.
struct Core {
    /// each with its port of the function
    inner: Vec<(u32, Box<dyn Queue>)>,
    common: Arc<Common>,
    sequencing: Arc<Mutex<Sequencing>>,
    /// packets so far
    number: u64,
    unsent: VecDeque<Out>,
    asked: Instant,
    counted: Instant,
    closed: bool,
}

impl Core {
    fn run(&mut self) {
        let common = self.common.clone();
        while !common.stop.load(Ordering::Acquire) {
            if !self.closed && common.closed.load(Ordering::Acquire) {
                self.closed = true;
                self.inner.iter_mut().for_each(|(_, queue)| queue.close());
            }
            let turn = self.turn();
            match turn {
                Ok(0) => std::thread::sleep(NAP),
                Ok(_) => {}
                Err(error) => {
                    *lock(&common.failed) = Some(error);
                    common.finished.store(true, Ordering::Release);
                    common.bells.iter().for_each(Bell::ring);
                    return;
                }
            }
        }
    }

    /// Receives and sends what there is; how many packets that was.
    fn turn(&mut self) -> Result<usize, PortError> {
        let mut received = 0;
        let mut frames = Vec::with_capacity(BATCH);
        for at in 0..self.inner.len() {
            frames.clear();
            let Some((_, queue)) = self.inner.get_mut(at) else {
                continue;
            };
            queue.receive(&mut frames, BATCH, u64::MAX)?;
            if frames.is_empty() {
                continue;
            }
            received += frames.len();
            self.number(&frames);
            if let Some((_, queue)) = self.inner.get_mut(at) {
                queue.release(&frames);
            }
        }
        if received == 0 {
            self.idle();
        }
        let sent = self.send()?;
        for (_, queue) in &mut self.inner {
            queue.flush()?;
        }
        if self.counted.elapsed() >= COUNT {
            self.counted = Instant::now();
            self.count();
        }
        Ok(received + sent)
    }

    /// Numbers packets, and hands them to their workers once their rows are seen.
    fn number(&mut self, frames: &[Frame]) {
        let mut sequencing = lock(&self.sequencing);
        let mut given: Vec<(u32, Handed)> = Vec::with_capacity(frames.len());
        for frame in frames {
            // SAFETY: the queue lends the frame until it is released, behind this call, and nobody writes it meanwhile.
            let bytes = unsafe { std::slice::from_raw_parts(frame.data, frame.length()) };
            let came = Came {
                frame: bytes,
                port: frame.port,
                number: self.number,
            };
            let time = clock::now().max(sequencing.time());
            let placed = sequencing.look(&came, time);
            // The last number is never reached (`millrace_steer::sequence::LAST`).
            let Ok((place, worker)) = placed.and_then(|()| sequencing.came(&came, time)) else {
                continue;
            };
            let sequenced = Sequenced {
                place,
                number: self.number,
            };
            self.number += 1;
            let handed = Handed {
                bytes: bytes.to_vec(),
                stamp: sequencing.time(),
                wire: frame.wire,
                port: frame.port,
                sequenced,
            };
            given.push((worker, handed));
        }
        sequencing.publish();
        for (worker, packet) in given {
            let worker = worker as usize;
            let Some(queue) = self.common.handed.get(worker) else {
                continue;
            };
            let mut queue = lock(queue);
            if queue.len() < DEPTH {
                queue.push_back(packet);
            } else if let Some(missed) = self.common.missed.get(worker) {
                missed.fetch_add(1, Ordering::Relaxed);
            }
        }
        sequencing.handed();
        drop(sequencing);
        self.asked = Instant::now();
        self.common.bells.iter().for_each(Bell::ring);
    }

    /// What is due where no packet comes; the last row, where no worker takes packets any more.
    fn idle(&mut self) {
        if self.asked.elapsed() < IDLE && !self.closed {
            return;
        }
        self.asked = Instant::now();
        if self.common.finished.load(Ordering::Acquire) {
            // Behind the last row there is none.
            return;
        }
        let mut sequencing = lock(&self.sequencing);
        let group = sequencing.group().clone();
        let time = clock::now().max(sequencing.time());
        let before = sequencing.sequence();
        let ended = self.closed && group.sealed();
        // Without a number left there is nothing to hand over.
        let _ = match ended {
            true => sequencing.last(time),
            false => sequencing.idle(time),
        };
        match ended {
            true => sequencing.end(),
            false => {
                sequencing.publish();
                sequencing.handed();
            }
        }
        let more = sequencing.sequence() > before;
        drop(sequencing);
        if ended {
            self.common.finished.store(true, Ordering::Release);
        }
        if more || ended {
            self.common.bells.iter().for_each(Bell::ring);
        }
    }

    /// Gives devices what workers send; how many packets they took.
    fn send(&mut self) -> Result<usize, PortError> {
        if self.common.unsent.load(Ordering::Acquire) == 0 {
            return Ok(0);
        }
        self.unsent.append(&mut lock(&self.common.out));
        let mut sent = 0;
        for (port, queue) in &mut self.inner {
            let mine = self.unsent.iter().filter(|out| out.port == *port);
            let mut departures: Vec<Departure> = mine.map(departure).collect();
            if departures.is_empty() {
                continue;
            }
            // The bytes were copied, or have left, when this is back: no buffer may be kept.
            let taken = queue.transmit(&mut departures)?;
            sent += taken;
            let mut left = taken;
            self.unsent.retain(|out| {
                let goes = out.port == *port && left > 0;
                left -= usize::from(goes);
                !goes
            });
        }
        self.common.unsent.fetch_sub(sent as u64, Ordering::AcqRel);
        Ok(sent)
    }

    fn count(&self) {
        let (mut all, mut memory) = (QueueCounts::default(), 0);
        for (_, queue) in &self.inner {
            let counts = queue.counts();
            all.missed += counts.missed;
            all.unfit += counts.unfit;
            all.failed += counts.failed;
            all.discarded += counts.discarded;
            all.duplicated += counts.duplicated;
            all.altered += counts.altered;
            memory += queue.memory();
        }
        *lock(&self.common.counts) = all;
        self.common.memory.store(memory, Ordering::Relaxed);
    }
}

fn departure(out: &Out) -> Departure {
    Departure {
        data: out.bytes.as_ptr(),
        length: out.bytes.len() as u32,
        wire: out.wire,
        stamp: out.stamp,
        port: out.port,
        pool: Pool::NONE,
        buffer: 0,
        may_keep: false,
        kept: false,
    }
}

/// A worker's queue.
struct Side {
    common: Arc<Common>,
    worker: usize,
    buffers: Buffers,
    sequenced: Vec<Sequenced>,
}

// SAFETY: frames come from `Buffers`, which lends each buffer once until it is released.
unsafe impl Queue for Side {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        _before: u64,
    ) -> Result<usize, PortError> {
        if let Some(bell) = self.common.bells.get(self.worker) {
            bell.awake();
        }
        self.sequenced.clear();
        if let Some(error) = lock(&self.common.failed).take() {
            return Err(error);
        }
        let Some(queue) = self.common.handed.get(self.worker) else {
            return Ok(0);
        };
        let mut queue = lock(queue);
        while self.sequenced.len() < most && self.buffers.free() > 0 {
            let Some(packet) = queue.pop_front() else {
                break;
            };
            // What is longer than a packet may be has no row either.
            let Some(mut frame) = self.buffers.copy(&packet.bytes) else {
                continue;
            };
            frame.port = packet.port;
            frame.stamp = packet.stamp;
            frame.wire = packet.wire;
            into.push(frame);
            self.sequenced.push(packet.sequenced);
        }
        Ok(self.sequenced.len())
    }

    fn sequenced(&self) -> &[Sequenced] {
        &self.sequenced
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        let mut out = lock(&self.common.out);
        let room = DEPTH.saturating_sub(out.len()).min(packets.len());
        let given = packets.iter().take(room).map(|packet| Out {
            bytes: packet.bytes().to_vec(),
            stamp: packet.stamp,
            wire: packet.wire,
            port: packet.port,
        });
        out.extend(given);
        self.common.unsent.fetch_add(room as u64, Ordering::AcqRel);
        Ok(room)
    }

    fn release(&mut self, frames: &[Frame]) {
        self.buffers.release(frames);
    }

    fn close(&mut self) {
        self.common.closed.store(true, Ordering::Release);
    }

    fn idle(&self) -> bool {
        self.common.unsent.load(Ordering::Acquire) == 0
    }

    fn counts(&self) -> QueueCounts {
        // What devices count is no worker's; the first one tells it.
        let devices = match self.worker {
            0 => *lock(&self.common.counts),
            _ => QueueCounts::default(),
        };
        let missed = self.common.missed.get(self.worker);
        QueueCounts {
            missed: devices.missed + missed.map_or(0, |m| m.load(Ordering::Relaxed)),
            ..devices
        }
    }

    fn descriptor(&self) -> Option<RawFd> {
        let fd = self.common.bells.get(self.worker)?.asleep();
        // What came before the bell was set does not ring it.
        let waits = self.common.handed.get(self.worker);
        let waits = waits.is_some_and(|queue| !lock(queue).is_empty());
        (!waits && !self.common.finished.load(Ordering::Acquire)).then_some(fd)
    }

    fn memory(&self) -> u64 {
        let devices = match self.worker {
            0 => self.common.memory.load(Ordering::Relaxed),
            _ => 0,
        };
        devices + self.buffers.memory()
    }
}
