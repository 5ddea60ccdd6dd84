//! A connection to a node that keeps copies of this machine's buckets.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use millrace_cluster::{Node, Refused};
use millrace_dataplane::clock;
use millrace_dataplane::copies::{beat, void};

use super::{Counters, Standby, Version, add, lock};
use crate::STEP;
use crate::hands::{fresh, unexpected};
use crate::message::{Message, Offer, read, refused, write};
use crate::security::Stream;

/// Bytes that wait for a connection, beyond which workers tell it nothing until there are fewer.
const ROOM: usize = 4 << 20;
/// How often something is sent, so that the other end knows that this one is there.
const BEAT: Duration = Duration::from_millis(100);
/// Frames that are sent before their acknowledgements are read.
const TOGETHER: usize = 32;

/// Rows that wait.
#[derive(Default)]
struct Queue {
    frames: VecDeque<(Vec<u8>, u64, Instant)>,
    bytes: usize,
    /// rows of these, and of those whose acknowledgement has not come
    rows: u64,
}

/// See the module.
pub struct Connection {
    pub number: u32,
    pub name: String,
    node: Node,
    /// of this machine
    pub life: u64,
    /// of the function
    pub version: Arc<Version>,
    queue: Mutex<Queue>,
    ready: Condvar,
    over: AtomicBool,
    slow: AtomicBool,
}

impl Connection {
    pub fn new(number: u32, node: &Node, life: u64, version: &Arc<Version>) -> Self {
        Self {
            number,
            name: node.name.clone(),
            node: node.clone(),
            life,
            version: version.clone(),
            queue: Mutex::default(),
            ready: Condvar::new(),
            over: AtomicBool::new(false),
            slow: AtomicBool::new(false),
        }
    }

    /// Connects on a thread of its own; whether there is one.
    pub fn begin(self: &Arc<Self>, standby: &Arc<Standby>, version: u64) -> bool {
        let (own, standby) = (self.clone(), standby.clone());
        let thread = std::thread::Builder::new().name("copies".to_owned());
        let begun = thread.spawn(move || {
            // Why is of no use to anybody: the table says whether the node is there, and the copy begins again.
            let served = own.serve(&standby, version);
            if served.is_err() && lock(&own.queue).bytes >= ROOM {
                own.slow.store(true, Ordering::Release);
                add(&standby.counts.slow, 1);
            }
            own.end();
            let left = std::mem::take(&mut *lock(&own.queue));
            standby
                .counts
                .behind
                .fetch_sub(left.rows, Ordering::Relaxed);
        });
        begun.is_ok()
    }

    /// Whether it is to this node, in its life.
    pub fn is_to(&self, node: &Node) -> bool {
        let of = (&self.name, self.node.life, self.node.peer);
        of == (&node.name, node.life, node.peer)
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Whether it ended with no room: the other end takes nothing.
    pub fn was_slow(&self) -> bool {
        self.slow.load(Ordering::Acquire)
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.ready.notify_all();
    }

    /// Bytes that it takes by now; none where it has ended.
    pub fn room(&self) -> Option<usize> {
        let bytes = lock(&self.queue).bytes;
        (!self.is_over()).then_some(ROOM.saturating_sub(bytes))
    }

    pub fn push(&self, bytes: Vec<u8>, rows: u64, counts: &Counters) {
        let mut queue = lock(&self.queue);
        if self.is_over() {
            counts.behind.fetch_sub(rows, Ordering::Relaxed);
            return;
        }
        queue.bytes += bytes.len();
        queue.rows += rows;
        queue.frames.push_back((bytes, rows, Instant::now()));
        self.ready.notify_one();
    }

    fn serve(&self, standby: &Standby, version: u64) -> Result<(), Refused> {
        let (mut stream, fingerprint, challenge) = standby.hands.reached(&self.node, STEP)?;
        if fingerprint != self.version.fingerprint {
            return Err(refused("it runs another function".to_owned()));
        }
        let mut offer = Offer {
            from: standby.name.clone(),
            to: self.node.name.clone(),
            fingerprint,
            bucket: self.version.content.workers as u32,
            version,
            time: clock::now(),
            bytes: self.life,
            digest: [0; 32],
            nonce: fresh()?,
            tag: [0; 32],
        };
        offer.tag = standby.secret.tag(&[b"follow", &challenge, &offer.said()]);
        let nonce = offer.nonce;
        write(&mut stream, &Message::Follow(Box::new(offer)))?;
        match read(&mut stream)? {
            Message::Go => {}
            other => return Err(unexpected(other)),
        }
        add(&standby.counts.begun, 1);
        let tell = |stream: &mut Stream, frames: Vec<Vec<u8>>, number: &mut u64| {
            let sent = frames.len();
            for bytes in frames {
                *number += 1;
                let said = number.to_be_bytes();
                let parts: [&[u8]; 5] = [b"rows", &challenge, &nonce, &said, &bytes];
                let tag = standby.secret.tag(&parts);
                write(stream, &Message::Rows { tag, bytes })?;
            }
            for _ in 0..sent {
                match read(stream)? {
                    // However slowly it takes them.
                    Message::Go => stream.renew(),
                    other => return Err(unexpected(other)),
                }
            }
            Ok(())
        };
        let (mut number, mut clock_told) = (0_u64, Instant::now());
        while !self.is_over() {
            let frames = self.next();
            let mut bytes: Vec<_> = frames.iter().map(|(bytes, ..)| bytes.clone()).collect();
            if bytes.is_empty() || clock_told.elapsed() >= BEAT {
                // Also between rows, which may have waited.
                bytes.push(beat());
                clock_told = Instant::now();
            }
            tell(&mut stream, bytes, &mut number)?;
            let rows: u64 = frames.iter().map(|(_, rows, _)| rows).sum();
            lock(&self.queue).rows -= rows;
            standby.counts.behind.fetch_sub(rows, Ordering::Relaxed);
            if let Some((.., at)) = frames.first().filter(|_| rows > 0) {
                let delay = at.elapsed().as_nanos().min(u128::from(u64::MAX)) as u64;
                standby.counts.delay.store(delay, Ordering::Relaxed);
            }
        }
        if standby.now().generation != self.version.generation {
            // What was told is of a version that runs no more.
            let workers = 0..self.version.content.workers;
            tell(&mut stream, workers.map(void).collect(), &mut number)?;
        }
        // It is told rather than that it has to notice.
        write(&mut stream, &Message::End)
    }

    /// What waits; after a while without anything that is nothing.
    fn next(&self) -> Vec<(Vec<u8>, u64, Instant)> {
        let mut queue = lock(&self.queue);
        if queue.frames.is_empty() && !self.is_over() {
            let waited = self.ready.wait_timeout(queue, BEAT);
            queue = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        let many = queue.frames.len().min(TOGETHER);
        let frames: Vec<_> = queue.frames.drain(..many).collect();
        queue.bytes -= frames.iter().map(|(bytes, ..)| bytes.len()).sum::<usize>();
        frames
    }
}
