//! The thread that makes flow records of samples and sends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rtrb::{Consumer, Producer, RingBuffer};
use serde::Serialize;

use crate::flows::{End, Flow, Flows, Timeouts};
use crate::ipfix::{self, Facts, Message};
use crate::sample::{Key, Sample};
use crate::sender::{Collector, Sender, Sent, Trouble};

/// Samples that wait for the thread, a worker.
const WAITING: usize = 4096;
/// How often the thread looks for samples.
const LOOK: Duration = Duration::from_millis(5);
/// How often it looks which flows are due, so that those of one time share messages.
const SWEEP: Duration = Duration::from_millis(200);
/// Templates and options are sent again after so long (RFC 7011, section 8.4: at regular intervals; at most a third of how long
/// collectors keep them, half an hour).
const TEMPLATES: Duration = Duration::from_secs(60);
/// And at once when a collector comes back, but no sooner than after this.
const BACK: Duration = Duration::from_millis(500);

/// What is exported.
#[derive(Clone, Debug)]
pub struct Setting {
    /// one packet of so many, from 1
    pub every: u32,
    /// where to
    pub collector: Collector,
    /// when flows are exported
    pub timeouts: Timeouts,
}

/// Counts that anybody may read.
#[derive(Debug, Default)]
pub struct Counters {
    sampled: AtomicU64,
    missed: AtomicU64,
    untold: AtomicU64,
    records: AtomicU64,
    lost: AtomicU64,
    messages: AtomicU64,
    templates: AtomicU64,
}

/// What an export has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// one packet of so many was sampled
    pub every: u32,
    /// packets that were sampled
    pub sampled: u64,
    /// of these, for which there was no room: no record has them
    pub missed: u64,
    /// of these, drops whose line is not known: telling had taken its share of the worker's time, or the interpreter could not say
    pub untold: u64,
    /// flow records that were sent
    pub records: u64,
    /// flow records that a collector that was away has not got
    pub lost: u64,
    /// messages that were sent
    pub messages: u64,
    /// times that templates were sent
    pub templates: u64,
}

impl Counters {
    pub(crate) fn add_sampled(&self, sampled: u64, missed: u64, untold: u64) {
        self.sampled.fetch_add(sampled, Ordering::Relaxed);
        self.missed.fetch_add(missed, Ordering::Relaxed);
        self.untold.fetch_add(untold, Ordering::Relaxed);
    }
}

/// An export that goes on. What is dropped without [`Exporter::end`] sends no more.
pub struct Exporter {
    every: u32,
    counters: Arc<Counters>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Where a worker puts its samples.
pub struct Feed {
    pub(crate) ring: Producer<Sample>,
    pub(crate) counters: Arc<Counters>,
}

impl Exporter {
    /// Begins, for so many workers; gives each one's place for samples.
    ///
    /// # Errors
    /// The collector's name is not known, or there is no thread for it.
    pub fn begin(
        setting: &Setting,
        ports: &[String],
        workers: usize,
    ) -> Result<(Self, Vec<Feed>), Trouble> {
        let sender = setting.collector.open()?;
        let counters = Arc::new(Counters::default());
        let over = Arc::new(AtomicBool::new(false));
        let (mut feeds, mut rings) = (Vec::new(), Vec::new());
        for _ in 0..workers {
            let (producer, consumer) = RingBuffer::new(WAITING);
            feeds.push(Feed {
                ring: producer,
                counters: counters.clone(),
            });
            rings.push(consumer);
        }
        let mut work = Work {
            rings,
            flows: Flows::new(setting.timeouts),
            swept: Instant::now(),
            out: Out {
                sender,
                counters: counters.clone(),
                facts: Facts {
                    every: setting.every,
                    ports: ports.to_vec(),
                },
                sequence: 0,
                message: None,
                told: None,
                refused: false,
                last: 0,
            },
        };
        let ending = over.clone();
        let thread = std::thread::Builder::new().name("export".into());
        let thread = thread.spawn(move || {
            while !ending.load(Ordering::Acquire) {
                if !work.step() {
                    std::thread::sleep(LOOK);
                }
            }
            work.end();
        });
        let thread = thread.map_err(|e| Trouble {
            what: format!("--export: no thread for it: {e}"),
            help: "let this user have more of them (ulimit -u)".into(),
        })?;
        let exporter = Self {
            every: setting.every,
            counters,
            over,
            thread: Some(thread),
        };
        Ok((exporter, feeds))
    }

    /// What it has done up to now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let c = &self.counters;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            every: self.every,
            sampled: of(&c.sampled),
            missed: of(&c.missed),
            untold: of(&c.untold),
            records: of(&c.records),
            lost: of(&c.lost),
            messages: of(&c.messages),
            templates: of(&c.templates),
        }
    }

    /// Exports what is left, when no worker samples any more, and ends.
    pub fn end(mut self) -> Counts {
        self.stop();
        self.counts()
    }

    fn stop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Work {
    rings: Vec<Consumer<Sample>>,
    flows: Flows,
    swept: Instant,
    out: Out,
}

impl Work {
    /// Takes what has come; false where there was nothing.
    fn step(&mut self) -> bool {
        let now = Instant::now();
        let (flows, out) = (&mut self.flows, &mut self.out);
        out.greet(now);
        let mut any = false;
        for ring in &mut self.rings {
            // No worker has the thread to itself.
            for _ in 0..WAITING {
                let Ok(sample) = ring.pop() else { break };
                any = true;
                flows.add(sample, now, &mut |key, flow, end| out.add(key, flow, end));
            }
        }
        if now.duration_since(self.swept) >= SWEEP {
            self.swept = now;
            flows.due(now, &mut |key, flow, end| out.add(key, flow, end));
            out.send();
        }
        any
    }

    fn end(&mut self) {
        while self.step() {}
        let (flows, out) = (&mut self.flows, &mut self.out);
        flows.all(End::Forced, &mut |key, flow, end| out.add(key, flow, end));
        out.send();
        out.end();
    }
}

/// Messages on their way.
struct Out {
    sender: Sender,
    counters: Arc<Counters>,
    facts: Facts,
    sequence: u32,
    message: Option<Message>,
    /// when templates were sent last
    told: Option<Instant>,
    /// nobody was there for the last message
    refused: bool,
    /// flow records of the last message that left, which are not counted yet
    last: u32,
}

fn seconds() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs() as u32)
}

impl Out {
    /// Sends templates where the collector does not know them, or may not.
    fn greet(&mut self, now: Instant) {
        let new = self.sender.connect();
        let age = self.told.map(|told| now.duration_since(told));
        let due = match age {
            None => true,
            Some(age) if self.refused => age >= BACK,
            Some(age) => age >= TEMPLATES,
        };
        if !(new || self.sender.forgets() && due) {
            return;
        }
        if new {
            // Sequence numbers are those of one session (RFC 7011, section 3.1).
            self.sequence = 0;
        }
        (self.told, self.refused) = (Some(now), false);
        self.counters.templates.fetch_add(1, Ordering::Relaxed);
        for message in ipfix::preamble(&self.facts, &mut self.sequence, seconds()) {
            self.put(&message, 0);
        }
    }

    fn add(&mut self, key: &Key, flow: &Flow, end: End) {
        let (template, record) = (ipfix::template(key), ipfix::record(key, flow, end));
        for _ in 0..2 {
            let sequence = self.sequence;
            let message = self
                .message
                .get_or_insert_with(|| Message::new(sequence, seconds()));
            if message.add(template, &record) {
                return;
            }
            self.send();
        }
    }

    /// Sends the message that is being written.
    fn send(&mut self) {
        if let Some(message) = self.message.take() {
            let records = message.records();
            let bytes = message.done(&mut self.sequence);
            self.put(&bytes, records);
        }
    }

    fn put(&mut self, message: &[u8], records: u32) {
        let count = |counter: &AtomicU64, n: u32| {
            counter.fetch_add(u64::from(n), Ordering::Relaxed);
        };
        let c = &self.counters;
        let sent = self.sender.send(message);
        // Whether somebody was there for a message is known when the next one leaves.
        let before = std::mem::take(&mut self.last);
        match sent {
            Sent::Refused => count(&c.lost, before),
            Sent::Yes | Sent::No => count(&c.records, before),
        }
        self.refused |= sent != Sent::Yes;
        if sent == Sent::No {
            count(&c.lost, records);
            return;
        }
        self.last = records;
        count(&c.messages, 1);
    }

    /// Counts the last message.
    fn end(&mut self) {
        let last = u64::from(std::mem::take(&mut self.last));
        let counter = match self.sender.refused() {
            true => &self.counters.lost,
            false => &self.counters.records,
        };
        counter.fetch_add(last, Ordering::Relaxed);
    }
}
