//! The formula, and the choice.

use super::{Measured, Prediction, Share, Work};
use millrace_place::Strategy;

/// Rates that differ by less are alike: measurements on a machine that does other things repeat no better.
const ALIKE: f64 = 0.03;

/// The part of the packets that the busiest of `cores` workers has. Between and beyond the numbers that are
/// known: what the next smaller one says of how uneven the load is, but at least the heaviest entry.
fn busiest(work: &Work, cores: u32) -> f64 {
    let even = 1.0 / f64::from(cores.max(1));
    let known = work.busiest.iter().rev().find(|s| s.cores <= cores);
    let share = known.map_or(even, |s| {
        s.share * f64::from(s.cores) / f64::from(cores.max(1))
    });
    share.max(work.heaviest).clamp(even, 1.0)
}

/// Nanoseconds that the busiest worker needs for each packet that all receive; none where it is not known
/// what the lock costs between cores.
fn time_ns(measured: &Measured, work: &Work, cores: u32) -> Option<f64> {
    if let Some(heavy) = &work.heavy {
        let n = f64::from(cores.max(1));
        let parts = heavy.shares.iter().find(|s| s.cores == cores)?;
        let each = measured.dispatch_ns + heavy.packet_ns + (n - 1.0) * work.replay_ns?;
        let own = parts.sharded * (measured.dispatch_ns + work.packet_ns);
        let time = own + parts.replicated * each / n;
        return Some(time.max(parts.replicated * work.sequencer_ns?));
    }
    if let (Some(replay), Some(sequencer)) = (work.replay_ns, work.sequencer_ns) {
        if work.strategy == Strategy::Hybrid {
            let own = busiest(work, cores);
            let each = measured.dispatch_ns + work.packet_ns;
            return Some((own * each + (1.0 - own) * replay).max(sequencer));
        }
        let n = f64::from(cores.max(1));
        let each = measured.dispatch_ns + work.packet_ns + (n - 1.0) * replay;
        return Some((each / n).max(sequencer));
    }
    let share = busiest(work, cores);
    let mut own = share * (measured.dispatch_ns + work.packet_ns);
    if work.strategy == Strategy::Transact || !work.foreign.is_empty() {
        let of = |shares: &[Share]| shares.iter().find(|s| s.cores == cores).map(|s| s.share);
        if cores > 1 {
            let (foreign, met) = (of(&work.foreign)?, of(&work.met)?);
            own += share * (foreign * measured.line_ns? + met * work.packet_ns);
        }
    }
    if work.writes <= 0.0 || cores <= 1 {
        return Some(own);
    }
    let lock = measured.lock?;
    let further = f64::from(cores - 1) * lock.core_ns?;
    let held = work.packet_ns + lock.writer_ns;
    Some(own + work.writes * ((1.0 - share) * held + further))
}

/// Expected rates of every strategy that was measured, at each number of cores; `alone` stands for one
/// core only. What cannot be said is left out.
#[must_use]
pub fn predict(measured: &Measured, cores: &[u32]) -> Vec<Prediction> {
    let mut out = Vec::new();
    for work in &measured.strategies {
        for cores in cores.iter().copied().filter(|c| *c > 0) {
            if work.strategy == Strategy::Alone && cores > 1 {
                continue;
            }
            let Some(time) = time_ns(measured, work, cores).filter(|t| *t > 0.0) else {
                continue;
            };
            out.push(Prediction {
                strategy: work.strategy,
                cores,
                mpps: 1e3 / time,
                simulated: cores > measured.processors,
            });
        }
    }
    out
}

/// The strategy with the highest rate on at most `cores` cores, and its prediction; of rates that are alike, the
/// strategy that was measured first, on the fewest cores. `alone` has its one core.
#[must_use]
pub fn best(predictions: &[Prediction], cores: u32) -> Option<Prediction> {
    let possible = || {
        predictions
            .iter()
            .filter(|p| p.cores == cores || (p.strategy == Strategy::Alone && p.cores <= cores))
    };
    let most = possible().map(|p| p.mpps).fold(0.0, f64::max);
    possible().find(|p| p.mpps >= most * (1.0 - ALIKE)).copied()
}
