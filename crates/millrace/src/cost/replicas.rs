//! The cost of a replica for a packet of a trace: of its own packets, of the rows of others, and of the sequencer that makes them.
//!
//! Two replicas: one has all packets as its own, the other their rows. A packet without a row costs a replica nothing where it is
//! another's, so that figures are a packet, not a row.

use millrace_dataplane::clock::Rate;
use millrace_dataplane::module::{Instance, Rows};
use millrace_dataplane::packet::{Burst, Layout};
use millrace_dataplane::runner::BURST;

use super::replay::{PACKETS, QUEUE, ROUNDS, Subject, Turn, calm};
use super::trace::Frames;
use crate::Error;

/// Replays the trace on fresh state, as [`super::replay::turn`] does.
///
/// # Errors
/// The state cannot be made.
pub fn turn(subject: &Subject, frames: &Frames) -> Result<Turn, Error> {
    let half = frames.packets() / 2;
    let rounds = PACKETS.div_ceil(frames.packets() - half).clamp(1, ROUNDS);
    let rate = Rate::start();
    let mut queue: Vec<Burst> = (0..QUEUE)
        .map(|_| Burst::new(BURST, subject.ports, Layout::Pooled))
        .collect();
    let mut ticks = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let mut config = subject.config.clone();
        config.time = frames.start();
        let create = || {
            Instance::create(subject.module.clone(), &config)
                .map_err(|e| Error::wrong(e).help("declare a smaller capacity, or free memory"))
        };
        let (mut own, mut other) = (create()?, create()?);
        own.start(config.time);
        other.start(config.time);
        let mut rows: Vec<Rows> = queue.iter().map(|_| Rows::default()).collect();
        let mut next = 0;
        let mut place = 0;
        while next < frames.packets() {
            let counted = next >= half;
            for burst in &mut queue {
                burst.clear();
                while next < frames.packets() && frames.push(next, burst) {
                    next += 1;
                }
            }
            let entry = subject.entry as u32;
            for (burst, rows) in queue.iter_mut().zip(&mut rows) {
                if burst.is_empty() {
                    continue;
                }
                rows.follow(place);
                let made = own.make_rows(entry, burst, rows);
                place += u64::from(rows.count());
                let run = own.run_rows(entry, burst, rows);
                let repeated = other.repeat_rows(rows);
                let (Some(made), Some(run), Some(repeated)) = (made, run, repeated) else {
                    return Err(Error::wrong(format!(
                        "replicas cannot be measured: rows {}, packets {}, replay {}",
                        said(made),
                        said(run),
                        said(repeated)
                    )));
                };
                if counted {
                    for (ticks, took) in ticks.iter_mut().zip([run, repeated, made]) {
                        ticks.push(took as f64 / burst.len() as f64);
                    }
                }
            }
        }
        own.stop(config.time);
        other.stop(config.time);
    }
    let [run, repeated, made] = ticks.map(|mut t| calm(&mut t) * rate.ns_per_tick());
    Ok(Turn {
        packet_ns: run,
        writes: 0.0,
        replay_ns: Some(repeated),
        sequencer_ns: Some(made),
    })
}

fn said(took: Option<u64>) -> &'static str {
    if took.is_some() { "done" } else { "refused" }
}
