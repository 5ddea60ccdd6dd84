//! Cost of ports to a worker: ns a packet for receiving it and sending it back unprocessed.
//! bench/dispatch.sh makes the interfaces and names the ports.
//!
//! A case is one port whose packets come back by themselves (`vnic:`, `net_ring`), or two at the ends of a
//! wire, each of which sends back what it receives, so that packets go to and fro. Only turns in which
//! something came are timed, in samples of which the median counts, so that a sample that other work
//! interrupted does not. Cases take turns; a figure is the median of them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use millrace_dataplane::clock::{Rate, ticks};
use millrace_dataplane::port::{self, Departure, Frame, LiveOptions, LivePort, Pool};

use crate::measure::pin_to;

/// Packets a burst.
const BURST: usize = 32;
/// Packets on their way, at each port: several bursts, and less than any ring holds.
const AROUND: usize = 256;
/// Bytes of one.
const LENGTH: usize = 60;
/// Packets of a sample.
const SAMPLE: u64 = 512;
/// Turns without a packet after which those on their way are taken for lost.
const PATIENCE: u32 = 100_000;

static NEVER: AtomicBool = AtomicBool::new(false);

#[derive(Args)]
pub struct Dispatch {
    /// How often each case is measured
    #[arg(long, default_value_t = 7)]
    turns: usize,
    /// How long, each time, seconds
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// The processor that is measured on
    #[arg(long, default_value_t = 1)]
    cpu: usize,
    /// NAME=PORT, NAME=PORT|PORT, or NAME*WORKERS=PORT: this many workers' queues, served in turns
    #[arg(required = true)]
    cases: Vec<String>,
}

struct Case {
    name: String,
    words: Vec<String>,
    workers: u32,
    /// of each turn: ns a packet, packets a burst
    figures: Vec<(f64, f64)>,
}

/// Measures the cases, and prints a table.
pub fn dispatch(arguments: &Dispatch) -> Result<()> {
    pin_to(arguments.cpu)?;
    let rate = Rate::start();
    let mut cases = Vec::new();
    for case in &arguments.cases {
        let (name, words) = case.split_once('=').context("a case is NAME=PORT")?;
        let (name, workers) = match name.split_once('*') {
            Some((name, workers)) => (name, workers.parse()?),
            None => (name, 1),
        };
        cases.push(Case {
            name: name.to_owned(),
            workers,
            words: words.split('|').map(str::to_owned).collect(),
            figures: Vec::new(),
        });
    }
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..arguments.turns.max(1) {
        for case in &mut cases {
            let time = Duration::try_from_secs_f64(arguments.seconds)?;
            let (ticks, burst) =
                turn(&case.words, case.workers, time).with_context(|| case.name.clone())?;
            case.figures.push((ticks * rate.ns_per_tick(), burst));
        }
    }
    println!("| port | ns a packet | range | packets a burst |\n| --- | --- | --- | --- |");
    for case in &mut cases {
        case.figures.sort_by(|a, b| a.0.total_cmp(&b.0));
        let median = case.figures.get(case.figures.len() / 2);
        let ends = case.figures.first().zip(case.figures.last());
        if let Some((median, (low, high))) = median.zip(ends) {
            println!(
                "| {} | {:.1} | {:.1} to {:.1} | {:.1} |",
                case.name, median.0, low.0, high.0, median.1
            );
        }
    }
    Ok(())
}

/// Opens a case's ports and sends packets to and fro; ticks a packet, and packets a burst.
fn turn(words: &[String], workers: u32, time: Duration) -> Result<(f64, f64)> {
    let options = |port| LiveOptions {
        port,
        queues: workers,
        ..LiveOptions::of_one_queue(BURST, &NEVER)
    };
    let mut ports = Vec::new();
    for (number, word) in words.iter().enumerate() {
        let opened = port::live(word, &options(number as u32));
        ports.push(opened.map_err(|e| anyhow::anyhow!("{e}; {}", e.help()))?.1);
    }
    // The software NIC has packets of its own.
    let primed = words.iter().any(|word| !word.starts_with("vnic:"));
    let (mut spent, mut packets, mut quiet) = (0_u64, 0_u64, PATIENCE);
    let (mut all, mut bursts, mut samples) = (0_u64, 0_u64, Vec::new());
    let mut frames: Vec<Frame> = Vec::new();
    let mut departures: Vec<Departure> = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < time {
        for queue in ports.iter_mut().flat_map(|port| &mut port.queues) {
            frames.clear();
            departures.clear();
            let before = ticks();
            if queue.receive(&mut frames, BURST, u64::MAX)? == 0 {
                queue.flush()?;
                quiet += 1;
                continue;
            }
            departures.extend(frames.iter().map(back));
            queue.transmit(&mut departures)?;
            queue.flush()?;
            let kept = frames
                .iter()
                .zip(&departures)
                .filter(|(_, d)| d.kept)
                .count();
            if kept == 0 {
                queue.release(&frames);
            } else if kept < frames.len() {
                let rest: Vec<Frame> = (frames.iter().zip(&departures))
                    .filter(|(_, d)| !d.kept)
                    .map(|(frame, _)| *frame)
                    .collect();
                queue.release(&rest);
            }
            spent += ticks().saturating_sub(before);
            packets += frames.len() as u64;
            all += frames.len() as u64;
            bursts += 1;
            quiet = 0;
            if packets >= SAMPLE {
                samples.push(spent as f64 / packets as f64);
                (spent, packets) = (0, 0);
            }
        }
        if primed && quiet >= PATIENCE {
            ports.iter_mut().try_for_each(prime)?;
            quiet = 0;
        }
    }
    // The first ones run over cold code and rings.
    let mut warm = samples.split_off(samples.len() / 10);
    warm.sort_by(f64::total_cmp);
    let median = warm.get(warm.len() / 2).context("too few packets came")?;
    Ok((*median, all as f64 / bursts as f64))
}

/// Sends UDP packets of as many flows, between addresses for documentation (RFC 5737) and to no interface
/// of the host, whose stack drops them at once.
fn prime(port: &mut LivePort) -> Result<()> {
    let Some(queue) = port.queues.first_mut() else {
        bail!("a port without a queue");
    };
    for flow in 0..AROUND as u16 {
        let mut bytes = [0_u8; LENGTH];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00]);
        bytes[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        bytes[26..34].copy_from_slice(&[192, 0, 2, flow as u8, 198, 51, 100, 1]);
        bytes[34..40].copy_from_slice(&[(flow >> 8) as u8, flow as u8, 0, 9, 0, 26]);
        let packet = Departure {
            data: bytes.as_ptr(),
            length: LENGTH as u32,
            wire: LENGTH as u32,
            stamp: 0,
            port: 0,
            pool: Pool::fresh(),
            buffer: 0,
            may_keep: false,
            kept: false,
        };
        queue.transmit(&mut [packet])?;
        queue.flush()?;
    }
    Ok(())
}

fn back(frame: &Frame) -> Departure {
    let length = (frame.end.addr() - frame.data.addr()) as u32;
    Departure {
        data: frame.data,
        length,
        wire: length,
        stamp: frame.stamp,
        port: 0,
        pool: frame.pool,
        buffer: frame.buffer,
        may_keep: true,
        kept: false,
    }
}
