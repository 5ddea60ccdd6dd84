//! What a device costs the worker: measured with a device of the same rings, before the run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::settings::{Rate, Settings};
use super::traffic::Traffic;
use super::{Nic, Steering};
use crate::clock;
use crate::port::{Departure, Frame, LiveOptions, PortError, Queue};

/// How long is measured, in all.
const TIME: Duration = Duration::from_millis(100);
/// Packets of a sample: long enough for the counter, short enough that few are interrupted.
const SAMPLE: usize = 512;
/// Packets a burst, as workers have them.
const BURST: usize = 32;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Nanoseconds a packet: the median over samples of what receive, transmit, flush and release take in
/// turns that receive something.
///
/// # Errors
/// As [`Nic::open`].
pub fn measure(settings: &Settings) -> Result<f64, PortError> {
    let one = Settings {
        queues: 1,
        threads: 1,
        steering: Steering::Spray,
        rate: Rate::Taken,
        ..settings.clone()
    };
    let options = LiveOptions::of_one_queue(BURST, &NEVER);
    let traffic = Arc::new(Traffic::read(&one, 0)?);
    let (nic, mut queues) = Nic::over(&one, &options, &traffic)?;
    let Some(queue) = queues.first_mut() else {
        return Ok(0.0);
    };
    // A worker's place: a processor that is not the device's.
    let core = crate::place::cpus()
        .first()
        .copied()
        .filter(|first| super::core(&one.cores, 0, 2).is_some_and(|device| device != *first));
    let ticks = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            if let Some(core) = core {
                // Elsewhere it measures as well, only less steadily.
                let _ = super::pin(core);
            }
            forward(queue.as_mut())
        });
        worker.join().unwrap_or(Ok(0.0))
    })?;
    Ok(ticks * nic.ns_per_tick())
}

/// Sends back what comes; ticks a packet.
fn forward(queue: &mut dyn Queue) -> Result<f64, PortError> {
    let (mut frames, mut departures): (Vec<Frame>, Vec<Departure>) = Default::default();
    let (mut samples, mut ticks, mut packets) = (Vec::new(), 0, 0);
    let begin = Instant::now();
    while begin.elapsed() < TIME {
        frames.clear();
        departures.clear();
        let before = clock::ticks();
        if queue.receive(&mut frames, BURST, u64::MAX)? == 0 {
            // With one processor the device needs it.
            std::thread::yield_now();
            continue;
        }
        departures.extend(frames.iter().map(departure));
        let taken = queue.transmit(&mut departures)?;
        queue.flush()?;
        // What was not taken comes back; the rest is the device's.
        queue.release(frames.get(taken..).unwrap_or(&[]));
        ticks += clock::ticks().saturating_sub(before);
        packets += frames.len();
        if packets >= SAMPLE {
            samples.push(ticks as f64 / packets as f64);
            (ticks, packets) = (0, 0);
        }
    }
    // The first rounds run over cold code and rings.
    let mut warm = samples.split_off(samples.len() / 10);
    warm.sort_by(f64::total_cmp);
    Ok(warm.get(warm.len() / 2).copied().unwrap_or(0.0))
}

fn departure(frame: &Frame) -> Departure {
    Departure {
        data: frame.data,
        length: (frame.end.addr() - frame.data.addr()) as u32,
        wire: frame.wire,
        stamp: frame.stamp,
        port: frame.port,
        pool: frame.pool,
        buffer: frame.buffer,
        may_keep: true,
        kept: false,
    }
}
