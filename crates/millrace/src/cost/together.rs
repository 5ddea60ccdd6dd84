//! The joint rate of workers over a trace, each with its packets in its own memory: no device, and so a processor for
//! each worker even where a device would need some.

use std::sync::{Arc, Barrier};

use millrace_dataplane::clock::{self, Rate};
use millrace_dataplane::module::{Instance, Shared};
use millrace_dataplane::packet::{Burst, Layout};
use millrace_dataplane::place;
use millrace_dataplane::runner::BURST;
use millrace_steer::Owners;

use super::replay::{QUEUE, Subject, wrote};
use super::trace::Frames;
use crate::Error;

/// Result of one turn.
#[derive(Clone, Debug)]
pub struct Together {
    /// million packets a second of all workers: the packets of the trace's second half over the time of the
    /// worker that is done last, copying them into buffers included
    pub mpps: f64,
    /// each worker's part of these packets, 0 to 1
    pub load: Vec<f64>,
    /// the part of them that wrote shared state
    pub writes: f64,
}

/// Result of a worker.
#[derive(Clone, Copy, Default)]
struct Found {
    ticks: u64,
    packets: u64,
    writes: u64,
}

/// Replays the trace on fresh state, on a worker for each of these processors. The first half brings the state
/// to what it usually is; for the second all begin at once.
///
/// # Errors
/// The state cannot be made.
pub fn turn(
    subject: &Subject,
    frames: &Frames,
    owners: &[Owners],
    cpus: &[usize],
) -> Result<Together, Error> {
    let workers = cpus.len().max(1);
    let mut config = subject.config.clone();
    config.time = frames.start();
    let failed = |e| Error::wrong(e).help("declare a smaller capacity, or free memory");
    let shared = Shared::create(subject.module.clone(), &config, workers as u32).map_err(failed)?;
    let instances = (0..workers as u32).map(|worker| Instance::join(&config, &shared, worker));
    let instances: Vec<Instance> = instances.collect::<Result<_, _>>().map_err(failed)?;
    let parts = parts(frames, owners, workers);
    // What a NIC works out before a worker has the packet.
    let homes = config.homes.as_ref().map_or(Vec::new(), |homes| {
        let all = frames.all();
        all.map(|(frame, port)| homes.of(port, frame)).collect()
    });
    let replay = Replay {
        subject,
        frames,
        homes: &homes,
    };
    let (ready, rate) = (Arc::new(Barrier::new(workers)), Rate::start());
    let found: Vec<Found> = std::thread::scope(|scope| {
        let threads: Vec<_> = instances
            .into_iter()
            .zip(parts)
            .enumerate()
            .map(|(worker, (mut instance, [first, second]))| {
                let (ready, cpu) = (ready.clone(), cpus.get(worker).copied());
                scope.spawn(move || {
                    if let Some(cpu) = cpu {
                        place::pin(cpu);
                    }
                    let mut queue: Vec<Burst> = (0..QUEUE)
                        .map(|_| {
                            let burst = Burst::new(BURST, subject.ports, Layout::Pooled);
                            burst.of_worker(worker as u32)
                        })
                        .collect();
                    instance.start(frames.start());
                    replay.run(&mut instance, &first, &mut queue);
                    ready.wait();
                    let begin = clock::ticks();
                    let writes = replay.run(&mut instance, &second, &mut queue);
                    let ticks = clock::ticks().saturating_sub(begin);
                    // Nobody stops before all are done: an ON_STOP may work on what others use.
                    ready.wait();
                    instance.stop(frames.start());
                    let packets = second.len() as u64;
                    Found {
                        ticks,
                        packets,
                        writes,
                    }
                })
            })
            .collect();
        let joined = threads.into_iter().map(|t| t.join().unwrap_or_default());
        joined.collect()
    });
    let packets = found.iter().map(|f| f.packets).sum::<u64>().max(1) as f64;
    let writes = found.iter().map(|f| f.writes).sum::<u64>() as f64;
    let longest = found.iter().map(|f| f.ticks).max().unwrap_or(0).max(1) as f64;
    Ok(Together {
        mpps: packets * 1e3 / (longest * rate.ns_per_tick()),
        load: found.iter().map(|f| f.packets as f64 / packets).collect(),
        writes: writes / packets,
    })
}

/// For each worker, the numbers of its packets of the trace's first half and of its second.
fn parts(frames: &Frames, owners: &[Owners], workers: usize) -> Vec<[Vec<u32>; 2]> {
    let mut parts: Vec<[Vec<u32>; 2]> = (0..workers).map(|_| Default::default()).collect();
    let half = frames.packets() / 2;
    for (index, (frame, port)) in frames.all().enumerate() {
        let of = owners.get(port as usize).or(owners.last());
        let owner = of.map_or(0, |o| o.owner(frame) as usize).min(workers - 1);
        let part = parts
            .get_mut(owner)
            .map(|[first, second]| match index < half {
                true => first,
                false => second,
            });
        if let Some(part) = part {
            part.push(index as u32);
        }
    }
    parts
}

/// What workers run.
#[derive(Clone, Copy)]
struct Replay<'a> {
    subject: &'a Subject,
    frames: &'a Frames,
    /// where each packet is at home; none where nobody asks
    homes: &'a [u32],
}

impl Replay<'_> {
    /// Runs these packets; how many of them wrote shared state.
    fn run(self, instance: &mut Instance, mine: &[u32], queue: &mut [Burst]) -> u64 {
        let (mut writes, shares) = (0, self.subject.module.orders());
        for chunk in mine.chunks(QUEUE * BURST) {
            queue.iter_mut().for_each(Burst::clear);
            for (packets, burst) in chunk.chunks(BURST).zip(queue.iter_mut()) {
                for index in packets {
                    let index = *index as usize;
                    let home = self.homes.get(index).copied().unwrap_or(0);
                    self.frames.push_from(index, home, burst);
                }
            }
            for burst in queue.iter_mut().filter(|b| !b.is_empty()) {
                instance.burst(self.subject.entry, true, burst);
                if shares {
                    writes += wrote(burst);
                }
            }
        }
        writes
    }
}
