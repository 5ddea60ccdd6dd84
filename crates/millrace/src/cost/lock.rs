//! The cost of the lock on this machine: a small function of which a known share of packets writes, on one worker and
//! on all processors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use millrace_dataplane::clock::{self, Rate};
use millrace_dataplane::module::{Instance, Shared};
use millrace_dataplane::packet::{Arrival, Burst, Layout};
use millrace_dataplane::place;
use millrace_dataplane::runner::BURST;
use millrace_emit::cache::{Cache, key};
use millrace_place::Placement;
use millrace_plan::cost::LockCost;

use crate::{Error, Function, Make};

/// The function.
const SOURCE: &str = include_str!("lock.c");
/// One of so many packets writes: often enough to be seen, rarely enough that writers do not queue.
const PERIOD: u64 = 32;
/// No packet writes.
const NEVER: u64 = u64::MAX;
/// How often everything is measured; the least of them counts, since what else the machine does only adds.
const TURNS: usize = 7;
/// How long each takes.
const TIME: Duration = Duration::from_millis(15);
/// More workers than this say no more.
const MOST: usize = 16;
/// Bursts of a worker.
const QUEUE: usize = 8;

/// Measures it on the processors that this process may use.
///
/// # Errors
/// The function cannot be built, or its state cannot be made.
pub fn measure() -> Result<LockCost, Error> {
    let cpus = place::cpus();
    let workers = cpus.len().clamp(1, MOST);
    let (never, often) = (build(NEVER)?, build(PERIOD)?);
    // By workers and writers: the least time a packet, ns.
    let mut least = [[f64::INFINITY; 2]; 2];
    for _ in 0..TURNS {
        for (workers, least) in [1, workers].into_iter().zip(&mut least) {
            for (subject, least) in [&never, &often].into_iter().zip(least) {
                *least = least.min(contend(subject, cpus.get(..workers).unwrap_or(&[]))?);
            }
        }
    }
    let [[one, one_writes], [all, all_writes]] = least;
    let share = 1.0 / PERIOD as f64;
    let writer_ns = ((one_writes - one) / share).max(0.0);
    let n = workers as f64;
    // The formula of `millrace_plan::cost`, solved for what a further core adds.
    let waited = (1.0 - 1.0 / n) * (one + writer_ns);
    let own = share * writer_ns / n;
    let core_ns = ((all_writes - all - own) / share - waited) / (n - 1.0);
    Ok(LockCost {
        writer_ns,
        core_ns: (workers > 1).then_some(core_ns.max(0.0)),
        cores: workers as u32,
    })
}

fn build(period: u64) -> Result<Function, Error> {
    let cache = Cache::of_user()?;
    // In one place, so that the second time it is built already.
    let source = cache.entry("measuring", &key(&[SOURCE.as_bytes()]), "c");
    if !cache.has(&source) {
        cache.write(&source, SOURCE.as_bytes())?;
    }
    let make = Make {
        settings: vec![("period".to_owned(), period.to_string())],
        placement: Some(Arc::new(Placement::locked(["entries"]))),
        ..Make::default()
    };
    crate::find(&source.to_string_lossy())?.load(&make, &mut |_| {})
}

/// Workers on these processors do bursts for a while; ns for each packet of all of them together.
fn contend(subject: &Function, cpus: &[usize]) -> Result<f64, Error> {
    let config = &subject.state(0, Vec::new());
    let failed = |e| Error::wrong(e).help("free memory on this machine");
    let workers = cpus.len().max(1);
    let shared = Shared::create(subject.module.clone(), config, workers as u32).map_err(failed)?;
    let instances: Vec<Instance> = (0..workers as u32)
        .map(|worker| Instance::join(config, &shared, worker))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    let (ready, stop, rate) = (
        Barrier::new(workers + 1),
        AtomicBool::new(false),
        Rate::start(),
    );
    let rates: f64 = std::thread::scope(|scope| {
        let threads: Vec<_> = instances
            .into_iter()
            .enumerate()
            .map(|(worker, mut instance)| {
                let (ready, stop, cpu) = (&ready, &stop, cpus.get(worker).copied());
                scope.spawn(move || {
                    if let Some(cpu) = cpu {
                        place::pin(cpu);
                    }
                    let mut queue = bursts(worker as u32);
                    instance.start(0);
                    ready.wait();
                    let (begin, mut packets) = (clock::ticks(), 0_u64);
                    while !stop.load(Ordering::Relaxed) {
                        // The function changes no packet, so a burst may go through it again.
                        for burst in &mut queue {
                            instance.burst(0, true, burst);
                            packets += burst.len() as u64;
                        }
                    }
                    packets as f64 / clock::ticks().saturating_sub(begin).max(1) as f64
                })
            })
            .collect();
        ready.wait();
        std::thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().filter_map(|t| t.join().ok()).sum()
    });
    Ok(rate.ns_per_tick() / rates.max(1e-12))
}

/// Packets of keys that differ from worker to worker.
fn bursts(worker: u32) -> Vec<Burst> {
    let mut number = 0_u32;
    let one = |_| {
        let mut burst = Burst::new(BURST, 2, Layout::Pooled).of_worker(worker);
        let mut frame = [0_u8; 64];
        while !burst.is_full() {
            let key = number.wrapping_mul(7).wrapping_add(worker * 251) as u16;
            if let Some(place) = frame.get_mut(28..30) {
                place.copy_from_slice(&key.to_be_bytes());
            }
            let arrival = Arrival {
                number: u64::from(number),
                wire: 64,
                ..Arrival::default()
            };
            if !burst.push(&frame, arrival) {
                break;
            }
            number += 1;
        }
        burst
    };
    (0..QUEUE).map(one).collect()
}
