//! Text form of measurements and of the table of expected rates.

use std::fmt::Write;

use super::{Measured, Prediction};
use millrace_place::Strategy;

/// Writes it down; `chosen` is the strategy that the plan has.
#[must_use]
pub fn text(measured: &Measured, predicted: &[Prediction], chosen: Strategy) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, measured, predicted, chosen);
    out
}

fn write(
    out: &mut String,
    measured: &Measured,
    predicted: &[Prediction],
    chosen: Strategy,
) -> std::fmt::Result {
    writeln!(
        out,
        "measured on this machine ({} processors) with {} packets of {}",
        measured.processors, measured.packets, measured.trace
    )?;
    writeln!(
        out,
        "  {}: {:.1} ns a packet to receive and send",
        measured.port, measured.dispatch_ns
    )?;
    for work in &measured.strategies {
        write!(
            out,
            "  {}: {:.1} ns a packet in the function",
            work.strategy.name(),
            work.packet_ns
        )?;
        if matches!(work.strategy, Strategy::Lock | Strategy::Mixed) && work.foreign.is_empty() {
            write!(
                out,
                ", {:.4} % of the packets write shared state",
                work.writes * 100.0
            )?;
        }
        if let (Some(foreign), Some(met)) = (work.foreign.last(), work.met.last()) {
            write!(
                out,
                ", on {} cores {:.2} % of the packets find what another core has written since, {:.2} % meet another core's, {:.4} % run alone",
                foreign.cores,
                foreign.share * 100.0,
                met.share * 100.0,
                work.writes * 100.0
            )?;
        }
        if let (Some(replay), Some(sequencer)) = (work.replay_ns, work.sequencer_ns) {
            write!(
                out,
                ", {replay:.1} ns a row of another core's packet, {sequencer:.1} ns in the sequencer"
            )?;
        }
        let heavy = work.heavy.as_ref().and_then(|h| h.shares.last());
        if let Some(parts) = heavy {
            write!(
                out,
                ", on {} cores {:.1} % of the packets are of replicated keys",
                parts.cores,
                parts.replicated * 100.0
            )?;
        }
        if let Some(share) = work.busiest.last().filter(|s| s.cores > 1) {
            write!(
                out,
                ", the busiest of {} cores has {:.2} times the mean, the heaviest table entry {:.2} % of all packets",
                share.cores,
                share.share * f64::from(share.cores),
                work.heaviest * 100.0
            )?;
        }
        writeln!(out)?;
    }
    if let Some(lock) = measured.lock {
        write!(
            out,
            "  lock: a packet that writes takes {:.0} ns more than one that reads",
            lock.writer_ns
        )?;
        match lock.core_ns {
            Some(ns) => writeln!(
                out,
                ", and {ns:.0} ns for each further core (measured with {})",
                lock.cores
            )?,
            None => writeln!(
                out,
                "; what it costs between cores needs a second processor to measure"
            )?,
        }
    }
    if let Some(ns) = measured.line_ns {
        writeln!(out, "  a line goes from core to core in {ns:.0} ns")?;
    }
    for no in &measured.unmeasured {
        writeln!(out, "  {}: not measured: {}", no.strategy.name(), no.why)?;
    }
    table(out, measured, predicted, chosen)
}

/// A line each strategy, a column each number of cores.
fn table(
    out: &mut String,
    measured: &Measured,
    predicted: &[Prediction],
    chosen: Strategy,
) -> std::fmt::Result {
    let mut cores: Vec<u32> = predicted.iter().map(|p| p.cores).collect();
    cores.sort_unstable();
    cores.dedup();
    write!(out, "predicted, Mpps\n  {:<9}", "cores")?;
    for n in &cores {
        write!(out, "{n:>9} ")?;
    }
    for work in &measured.strategies {
        let mark = if work.strategy == chosen { "  *" } else { "" };
        write!(out, "\n  {:<9}", work.strategy.name())?;
        for n in &cores {
            let found = predicted
                .iter()
                .find(|p| p.strategy == work.strategy && p.cores == *n);
            match found {
                Some(p) => {
                    let simulated = if p.simulated { '~' } else { ' ' };
                    write!(out, "{:>9.2}{simulated}", p.mpps)?;
                }
                None => write!(out, "{:>9} ", "-")?,
            }
        }
        write!(out, "{mark}")?;
    }
    writeln!(out, "\n  * what the plan takes")?;
    if predicted.iter().any(|p| p.simulated) {
        writeln!(
            out,
            "  ~ simulated: more cores than this machine has, continued with the cost model (docs/scaling.md)"
        )?;
    }
    Ok(())
}
