//! A function on workers, served by a software NIC whose rate is set from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millrace::{Job, LENT, Served, replicas};
use millrace_dataplane::account::Account;
use millrace_dataplane::port::vnic::{Counts, Nic, Rate, Settings};
use millrace_dataplane::port::{LiveOptions, LivePort, steered};
use millrace_dataplane::replica::ROWS;
use millrace_dataplane::signal;

use super::row::Measured;
use super::search::Trial;
use crate::failure::Failure;

/// After a change of the rate, before anything is counted: rings reach their usual filling.
const SETTLE: Duration = Duration::from_millis(20);
/// A device that offers less than this share of what was asked for is at its end.
const OFFERED: f64 = 0.98;
/// A trial that loses is tried again: what else the machine does can stop a worker for longer than a
/// ring lasts, and can only make it look slower.
const ATTEMPTS: u32 = 3;

/// A running function.
pub struct Rig {
    nic: Arc<Nic>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Account, Failure>>>,
    window: Duration,
}

/// Result of a window.
pub struct Window {
    /// seconds for which the device had its processors
    pub seconds: f64,
    /// what was counted
    pub counts: Counts,
}

impl Window {
    /// Packets offered a second.
    pub fn offered(&self) -> f64 {
        self.counts.offered() as f64 / self.seconds
    }

    /// Packets lost, as a share of those offered.
    pub fn lost(&self) -> f64 {
        self.counts.lost() as f64 / (self.counts.offered() as f64).max(1.0)
    }
}

/// Where the threads run and how long is measured.
pub struct Place<'a> {
    /// a processor for each worker
    pub workers: &'a [usize],
    /// packets a burst
    pub burst: usize,
    /// how long each trial takes
    pub window: Duration,
}

impl Rig {
    /// Starts the function on as many workers as the settings have queues.
    pub fn start(
        function: &Measured,
        settings: &Settings,
        place: &Place<'_>,
    ) -> Result<Self, Failure> {
        let names = function.row.ports.clone();
        let placement = function.placement();
        // Where keys move between owners and all workers, the sequencer deals packets out.
        let steered_by_hash = placement.filter(|p| p.elephants.is_none() && !p.replicates());
        let steering = steered_by_hash.and_then(|p| p.steering(names.len().max(2)));
        let mut settings = settings.clone();
        if let Some(steering) = &steering {
            settings.tell(steering.iter().map(|s| s.nic.clone()).collect())?;
        }
        let mut chain = function.row.links.clone();
        // What is measured is the function: packets that it hands over are passed.
        chain.iter_mut().for_each(|link| link.slow = None);
        let sequencing = replicas::sequencing(
            &mut chain,
            place.workers.len(),
            &replicas::Stands::alone(names.len()),
            (ROWS, placement.map(|p| &**p)),
            None,
        )?;
        if sequencing.is_some() {
            settings.sequence()?;
        }
        let options = LiveOptions {
            queues: settings.queues,
            steering: steering.as_deref(),
            sequencing: sequencing.as_ref(),
            ..LiveOptions::of_one_queue(
                place.burst * if steering.is_some() { LENT } else { 1 },
                signal::flag(),
            )
        };
        let (nic, queues) = Nic::open(&settings, &options)?;
        nic.set_rate(None);
        let port = LivePort {
            queues,
            hold: None,
            told: true,
            table: None,
            facts: Vec::new(),
        };
        let queues = steered(&settings.word, port, &options)?.queues;
        let nic = Arc::new(nic);
        let served = Served {
            workers: queues.into_iter().map(|queue| vec![queue]).collect(),
            words: vec![settings.word.clone()],
            // One device is all ports: what leaves anywhere leaves through the queue it came from.
            of_port: vec![Some(0); names.len()],
            holds: vec![Box::new(nic.clone())],
            sequencing: sequencing.clone(),
            ..Served::default()
        };
        let job = Job {
            workers: place.workers.len(),
            cpus: place.workers.to_vec(),
            burst: place.burst,
            busy: true,
            topology: function.row.topology.clone(),
            ..Job::new(chain, names)
        };
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = std::thread::Builder::new()
            .name("bench".into())
            .spawn(move || job.on(served).run(&told, &mut |_| {}))
            .map_err(|e| Failure::wrong(format!("no thread: {e}")))?;
        Ok(Self {
            nic,
            stop,
            thread: Some(thread),
            window: place.window,
        })
    }

    /// Counts over a window of time at this rate.
    pub fn window(&self, rate: Rate, time: Duration) -> Window {
        self.nic.set_rate(Some(rate));
        std::thread::sleep(SETTLE);
        let (before, begin) = (self.nic.counts(), Instant::now());
        std::thread::sleep(time);
        let (after, took) = (self.nic.counts(), begin.elapsed());
        let counts = after.since(&before);
        let seconds = (counts.running_ns / 1e9).clamp(1e-9, took.as_secs_f64());
        Window { seconds, counts }
    }

    /// One trial of a search: the best of a few attempts.
    pub fn trial(&self, rate: f64, loss: f64) -> Trial {
        let mut best: Option<Trial> = None;
        for _ in 0..ATTEMPTS {
            let window = self.window(Rate::PerSecond(rate), self.window);
            let seen = Trial {
                offered: window.offered(),
                lost: window.lost(),
                saturated: window.offered() < OFFERED * rate,
            };
            if best.is_none_or(|b| seen.lost < b.lost) {
                best = Some(seen);
            }
            if seen.lost <= loss || self.ended() {
                break;
            }
        }
        best.unwrap_or(Trial {
            offered: 0.0,
            lost: 1.0,
            saturated: false,
        })
    }

    /// Nanoseconds a tick of the device's times.
    pub fn ns_per_tick(&self) -> f64 {
        self.nic.ns_per_tick()
    }

    /// Whether the workers have ended by themselves, which they should not.
    pub fn ended(&self) -> bool {
        signal::flag().load(Ordering::Relaxed)
            || self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops, and gives the account of the whole run.
    pub fn finish(mut self) -> Result<Account, Failure> {
        self.halt()
            .unwrap_or_else(|| Err(Failure::wrong("a worker died")))
    }

    fn halt(&mut self) -> Option<Result<Account, Failure>> {
        self.nic.set_rate(None);
        self.stop.store(true, Ordering::Relaxed);
        let account = self.thread.take()?.join().ok()?;
        Some(account)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.halt();
    }
}
