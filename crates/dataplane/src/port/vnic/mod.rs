//! `vnic:FILE`: a software NIC, whose packets come from a capture and whose cost is like a NIC's.
//!
//! Threads of its own play the hardware (`hardware`): they write packets into buffers and
//! descriptors into rings, pick up what is sent, and write completions. The worker's side (`driver`)
//! does what a poll-mode driver does. RSS is worked out from the capture before anything runs, so it
//! costs the worker nothing, as in hardware. The dispatch cost that this makes is measured when the
//! port is opened and stands among its facts; README.md tells what it can and cannot stand for.

mod dealt;
mod device;
mod dispatch;
mod driver;
mod hardware;
mod latency;
mod memory;
mod packets;
mod ring;
mod schedule;
mod settings;
mod table;
mod traffic;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

pub use device::Device;
pub use latency::Times;
pub use settings::{Rate, Settings, Steering};

use self::dealt::{Dealt, Whose};
use self::hardware::Work;
use self::latency::Latency;
use self::packets::Packets;
use self::ring::Rings;
use self::schedule::Order;
use self::traffic::Traffic;
use super::{Kind, LiveOptions, LivePort, PortError, Queue};
use crate::classes::table::Indirection;
use crate::clock;
use crate::replica::{Batch, Sequencing};

const SCHEME: &str = "vnic";

/// Software NICs.
pub const KIND: Kind = Kind {
    scheme: SCHEME,
    form: "vnic:FILE.pcap?nic=MODEL&rate=RATE",
    what: "a software NIC that receives a capture, with RSS over as many queues as there are workers",
    input: None,
    output: None,
    live: Some(open),
    spelled: |rest| Settings::parse(rest, 1).map(drop),
};

fn open(rest: &str, options: &LiveOptions) -> Result<LivePort, PortError> {
    let mut settings = Settings::parse(rest, options.queues)?;
    if let Some(steering) = options.steering {
        settings.tell(steering.iter().map(|s| s.nic.clone()).collect())?;
    }
    if options.sequencing.is_some() {
        settings.sequence()?;
        settings.directed = options.sequencing.is_some_and(|s| {
            let sequencing = s.lock().unwrap_or_else(PoisonError::into_inner);
            sequencing.group().directs()
        });
    }
    let mut facts = settings.facts();
    if settings.measure {
        let cost = dispatch::measure(&settings)?;
        facts.push(format!("dispatch {cost:.1} ns a packet, measured at start"));
    }
    let (nic, queues) = Nic::open(&settings, options)?;
    let table = nic.table.clone().map(|table| table as Arc<dyn Indirection>);
    Ok(LivePort {
        table,
        queues,
        hold: Some(Box::new(nic)),
        told: options.steering.is_some(),
        facts,
    })
}

/// The dispatch cost of such a device, ns a packet: what receive, transmit and the taking back of
/// buffers cost the worker, with bursts of 32 and nothing done to the packets. Takes a tenth of a
/// second, on the calling thread.
///
/// # Errors
/// As [`Nic::open`].
pub fn dispatch_cost(settings: &Settings) -> Result<f64, PortError> {
    dispatch::measure(settings)
}

/// A running software NIC. Dropping it ends its threads.
pub struct Nic {
    device: Arc<Device>,
    rings: Arc<[Arc<Rings>]>,
    latency: Vec<Arc<Latency>>,
    threads: Vec<JoinHandle<()>>,
    /// for each thread, the clock of its processor time; [`NO_CLOCK`] until it runs
    clocks: Vec<Arc<AtomicI32>>,
    ns_per_tick: f64,
    /// which workers may change
    table: Option<Arc<table::Table>>,
}

/// No clock has this number.
const NO_CLOCK: i32 = i32::MIN;

/// What a device has counted, from its start.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// packets written into buffers, by queue
    pub delivered: Vec<u64>,
    /// packets that found no buffer
    pub missed: u64,
    /// packets that do not fit into a buffer
    pub unfit: u64,
    /// packets sent
    pub sent: u64,
    /// their bytes
    pub sent_bytes: u64,
    /// packets for which a transmit ring had no room
    pub refused: u64,
    /// times from receive to send, ticks
    pub times: Times,
    /// ns in which threads of the device should have received and did not run
    pub stalled_ns: f64,
    /// ns for which the threads of the device had a processor: the mean over them. A device that
    /// shares its processor is off while others have it, and rates are over the time it was on
    pub running_ns: f64,
}

impl Counts {
    /// What was added since another moment.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let delivered = self.delivered.iter().zip(&before.delivered);
        Self {
            delivered: delivered.map(|(a, b)| a.saturating_sub(*b)).collect(),
            missed: self.missed.saturating_sub(before.missed),
            unfit: self.unfit.saturating_sub(before.unfit),
            sent: self.sent.saturating_sub(before.sent),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            refused: self.refused.saturating_sub(before.refused),
            times: self.times.since(&before.times),
            stalled_ns: self.stalled_ns - before.stalled_ns,
            running_ns: self.running_ns - before.running_ns,
        }
    }

    /// Packets that came over the link: delivered or lost.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.delivered.iter().sum::<u64>() + self.missed + self.unfit
    }

    /// Packets that were lost for want of room in a ring, on the way in or out.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.missed + self.refused
    }
}

impl Nic {
    /// Starts a device. It receives nothing before every queue has been looked at once.
    ///
    /// # Errors
    /// When the capture cannot be read, or there is no memory or thread for it.
    pub fn open(
        settings: &Settings,
        options: &LiveOptions,
    ) -> Result<(Self, Vec<Box<dyn Queue>>), PortError> {
        let traffic = Arc::new(Traffic::read(settings, options.port)?);
        Self::over(settings, options, &traffic)
    }

    fn over(
        settings: &Settings,
        options: &LiveOptions,
        traffic: &Arc<Traffic>,
    ) -> Result<(Self, Vec<Box<dyn Queue>>), PortError> {
        let failed = |what: String| PortError::Live {
            word: settings.word.clone(),
            what,
            help: "use fewer queues or smaller rings (`depth`, `txdepth`)".into(),
        };
        let rings = (0..settings.queues)
            .map(|_| Rings::new(settings.rx_depth, settings.tx_depth, spare(options)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| failed(format!("no memory for its buffers: {e}")))?;
        let rings: Arc<[Arc<Rings>]> = rings.into_iter().map(Arc::new).collect();
        let device = Arc::new(Device::new(settings.queues, settings.rate));
        let whose = options.sequencing.and_then(|s| whose(s, traffic));
        let threads = settings.threads;
        let ns_per_tick = clock::Rate::start().ns_per_tick();
        let charge = settings.dispatch / ns_per_tick;
        // Each of several threads has queues of its own, and the packets that came to these when the capture was read.
        let one = threads == 1 && matches!(settings.steering, Steering::Told(_));
        let classes = options.classes.filter(|_| one);
        let table = classes.and_then(|classes| table::Table::of(classes, settings.queues));
        let table = table.map(Arc::new);
        let mut nic = Self {
            device: device.clone(),
            rings: rings.clone(),
            latency: Vec::new(),
            threads: Vec::new(),
            clocks: Vec::new(),
            ns_per_tick,
            table: table.clone(),
        };
        for thread in 0..threads {
            let latency = Arc::new(Latency::default());
            nic.latency.push(latency.clone());
            let mine = share(settings.queues as usize, threads, thread);
            let core = core(&settings.cores, thread, settings.queues as usize + threads);
            let mut work = Work {
                device: device.clone(),
                traffic: traffic.clone(),
                packets: match &whose {
                    Some(whose) => dealt(settings, whose, &mine),
                    None => Packets::Known {
                        order: order(settings, traffic, &mine),
                        index: 0,
                    },
                },
                queues: mine
                    .filter_map(|i| Some((i, rings.get(i)?.clone())))
                    .collect(),
                all: rings.clone(),
                loops: options.loops,
                stamps: settings.stamps,
                table: table.clone(),
                room: Settings::room(),
                latency,
                pinned: false,
                sequencing: options
                    .sequencing
                    .map(Batch::new)
                    .transpose()
                    .map_err(|e| failed(format!("no memory for its sequencer: {e}")))?,
            };
            let clock = Arc::new(AtomicI32::new(NO_CLOCK));
            nic.clocks.push(clock.clone());
            let run = move || {
                clock.store(own_clock(), Ordering::Release);
                // A processor that is not there or not ours: the thread runs where it may.
                work.pinned = core.is_some_and(|core| pin(core).is_ok());
                hardware::run(work);
            };
            let named = std::thread::Builder::new().name(format!("vnic-{thread}"));
            let started = named
                .spawn(run)
                .map_err(|e| failed(format!("no thread: {e}")))?;
            nic.threads.push(started);
        }
        let queues = rings.iter().enumerate().map(|(index, rings)| {
            let driver = driver::Driver::new(&device, index, rings, settings.stamps, charge)
                .sequenced(options.sequencing.is_some())
                .told(matches!(settings.steering, Steering::Told(_)));
            Box::new(driver) as Box<dyn Queue>
        });
        Ok((nic, queues.collect()))
    }

    /// Sets how fast packets come from now on; none, not at all.
    pub fn set_rate(&self, rate: Option<Rate>) {
        self.device.set_rate(rate);
    }

    /// What it has counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let sum = |of: fn(&Rings) -> &std::sync::atomic::AtomicU64| {
            self.rings.iter().map(|r| read(of(r))).sum()
        };
        let times = self
            .latency
            .iter()
            .fold(Times::default(), |all, latency| all.with(&latency.counts()));
        Counts {
            delivered: self
                .rings
                .iter()
                .map(|r| read(&r.device.delivered))
                .collect(),
            missed: sum(|r| &r.device.missed),
            unfit: sum(|r| &r.device.unfit),
            sent: sum(|r| &r.device.sent),
            sent_bytes: sum(|r| &r.device.sent_bytes),
            refused: sum(|r| &r.driver.refused),
            times,
            stalled_ns: self.device.stalled() as f64 * self.ns_per_tick,
            running_ns: self.running_ns(),
        }
    }

    fn running_ns(&self) -> f64 {
        let clocks = self.clocks.iter().map(|c| c.load(Ordering::Acquire));
        let times = clocks.filter(|clock| *clock != NO_CLOCK).map(|clock| {
            let mut time = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // SAFETY: the structure is ours; a clock that does not exist is an error, and then it
            // stays 0. The threads whose clocks these are end when `self` is dropped.
            unsafe { libc::clock_gettime(clock, &raw mut time) };
            time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
        });
        times.sum::<f64>() / self.clocks.len().max(1) as f64
    }

    /// How many threads play it.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Nanoseconds a tick, for [`Counts::times`].
    #[must_use]
    pub fn ns_per_tick(&self) -> f64 {
        self.ns_per_tick
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        self.device.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to give back.
            let _ = thread.join();
        }
    }
}

/// The clock of the calling thread's processor time.
fn own_clock() -> i32 {
    let mut clock = NO_CLOCK;
    // SAFETY: the calling thread exists, and the number is ours. On an error it stays as it is.
    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    clock
}

/// Buffers that a worker may hold besides those in the rings.
fn spare(options: &LiveOptions) -> usize {
    4 * options.burst.max(32)
}

/// The queues of a thread: neighbours, as many as any other thread has, give or take one.
fn share(queues: usize, threads: usize, thread: usize) -> std::ops::Range<usize> {
    let threads = threads.max(1);
    queues * thread / threads..queues * (thread + 1) / threads
}

fn order(settings: &Settings, traffic: &Traffic, mine: &std::ops::Range<usize>) -> Order {
    let all = traffic.entries.len() as u64;
    match settings.steering {
        Steering::Spray => Order::Spray {
            group: u64::from(settings.group.max(1)),
            from: mine.start as u64,
            mine: mine.len() as u64,
            queues: u64::from(settings.queues),
            all,
        },
        Steering::Rss(_) | Steering::Told(_) => {
            let entries = traffic.entries.iter().enumerate();
            let mine = entries.filter(|(_, e)| mine.contains(&(e.queue as usize)));
            Order::Fixed {
                entries: mine.map(|(index, _)| index as u32).collect(),
                all,
            }
        }
    }
}

/// The packets of a thread that has these queues, where heavy keys are chosen while packets come.
fn dealt(settings: &Settings, whose: &Arc<Whose>, mine: &std::ops::Range<usize>) -> Packets {
    let mine = mine.start as u32..mine.end as u32;
    let group = u64::from(settings.group);
    Packets::Dealt(Box::new(Dealt::new(
        whose.clone(),
        mine,
        settings.queues,
        group,
    )))
}

/// Keys of the capture's packets and the workers that own them, where the sequencer says of each packet who gets it.
fn whose(sequencing: &Mutex<Sequencing>, traffic: &Traffic) -> Option<Arc<Whose>> {
    let sequencing = sequencing.lock().unwrap_or_else(PoisonError::into_inner);
    Whose::new(sequencing.group(), traffic).map(Arc::new)
}

/// The processor of a thread: as told, or the last ones of those there are, where workers and threads of the device, `all` of
/// them, have one each. Where they share processors a thread that keeps one keeps it from workers.
fn core(told: &[usize], thread: usize, all: usize) -> Option<usize> {
    if !told.is_empty() {
        return told.get(thread % told.len()).copied();
    }
    // A quota may allow fewer than those that this process may run on.
    let count = std::thread::available_parallelism().ok()?.get();
    (all <= count).then(|| crate::place::cpus().iter().rev().nth(thread).copied())?
}

/// Pins the calling thread to a processor.
///
/// # Errors
/// What the system says.
fn pin(core: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}
