//! How packets of a trace that are transactions share entries, for any number of cores: counted from what each packet reads and
//! writes, which a module for tests notes, on one worker.

use std::collections::HashMap;

use millrace_dataplane::module::{Access, Instance};
use millrace_dataplane::packet::{Burst, Layout};
use millrace_dataplane::runner::BURST;
use millrace_plan::cost::Share;
use millrace_steer::Steering;

use super::replay::Subject;
use super::trace::Frames;
use crate::Error;

/// The two counts, over the trace's second half.
#[derive(Debug, Default)]
pub struct Counts {
    /// by number of cores: the part of the packets that find a word which another core has written since this one touched it
    pub foreign: Vec<Share>,
    /// the part of the packets that meet one of another core
    pub met: Vec<Share>,
}

/// The words of one packet.
#[derive(Debug, Default)]
struct Words {
    read: Vec<u64>,
    written: Vec<u64>,
}

/// Counts them for these numbers of cores; `steering` says whose packets are whose on each.
///
/// # Errors
/// The state cannot be made.
pub fn counts(
    subject: &Subject,
    frames: &Frames,
    steerings: &[(u32, Vec<Steering>)],
) -> Result<Counts, Error> {
    let words = words(subject, frames)?;
    let mut counts = Counts::default();
    for (cores, steering) in steerings {
        let worker = |(frame, port): (&[u8], u32)| {
            let of = steering.get(port as usize).or(steering.last());
            of.map_or(0, |s| s.queue(frame))
        };
        let workers: Vec<u32> = frames.all().map(worker).collect();
        let (foreign, met) = counted(&words, &workers, *cores);
        let share = |share| Share {
            cores: *cores,
            share,
        };
        counts.foreign.push(share(foreign));
        counts.met.push(share(met));
    }
    Ok(counts)
}

/// What each packet of the trace reads and writes, in order; a packet that runs alone as if it touched nothing, since its cost is
/// another one.
fn words(subject: &Subject, frames: &Frames) -> Result<Vec<Words>, Error> {
    let mut config = subject.config.clone();
    config.time = frames.start();
    let mut instance = Instance::create(subject.module.clone(), &config)
        .map_err(|e| Error::wrong(e).help("declare a smaller capacity, or free memory"))?;
    instance.start(config.time);
    let mut burst = Burst::new(BURST, subject.ports, Layout::Pooled);
    let (mut all, mut own, mut next) = (Vec::new(), Words::default(), 0);
    while next < frames.packets() {
        burst.clear();
        while next < frames.packets() && frames.push(next, &mut burst) {
            next += 1;
        }
        instance.burst(subject.entry, true, &mut burst);
        instance.accesses(|access| match access {
            Access::Read { word, .. } => own.read.push(word),
            Access::Write { word, .. } => own.written.push(word),
            Access::Expired { .. } => {}
            Access::End { packet: None, .. } => own = Words::default(),
            Access::End { itself, .. } => {
                let words = std::mem::take(&mut own);
                all.push(if itself { Words::default() } else { words });
            }
        });
    }
    instance.stop(config.time);
    Ok(all)
}

/// The parts of the second half's packets that find what another worker has written since this one touched it, so that its line has
/// to come from there; and that meet another worker's.
fn counted(words: &[Words], workers: &[u32], cores: u32) -> (f64, f64) {
    // Of each word the last write, and of each worker its last look: which packet.
    let mut wrote: HashMap<u64, (u32, usize)> = HashMap::new();
    let mut looked: HashMap<(u64, u32), usize> = HashMap::new();
    let half = words.len() / 2;
    let (mut foreign, mut met) = (0_u64, 0_u64);
    for (at, (own, worker)) in words.iter().zip(workers).enumerate() {
        let touched = || own.read.iter().chain(&own.written);
        if at >= half {
            let new = |w: &u64| {
                let seen = looked.get(&(*w, *worker));
                let last = wrote.get(w);
                last.is_some_and(|(by, when)| by != worker && seen.is_none_or(|seen| seen < when))
            };
            foreign += u64::from(touched().any(new));
            // One packet at each core runs at a time.
            let begin = at.saturating_sub(cores as usize - 1);
            let beside = words.iter().zip(workers).skip(begin).take(at - begin);
            let meets = |(other, of): (&Words, &u32)| {
                let writes = |w: &u64| other.written.contains(w);
                of != worker
                    && (touched().any(writes) || own.written.iter().any(|w| other.read.contains(w)))
            };
            met += u64::from(beside.into_iter().any(meets));
        }
        looked.extend(touched().map(|w| ((*w, *worker), at)));
        wrote.extend(own.written.iter().map(|w| (*w, (*worker, at))));
    }
    let packets = (words.len() - half).max(1) as f64;
    (foreign as f64 / packets, met as f64 / packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_is_counted_and_who_meets() {
        let packet = |read: &[u64], written: &[u64]| Words {
            read: read.to_vec(),
            written: written.to_vec(),
        };
        // Half of it is not counted. Then: worker 0 reads what 1 wrote; 0 again what it wrote itself; 1 what 0 wrote just now; 0 what
        // it has read before.
        let words = [
            packet(&[], &[8]),
            packet(&[], &[9]),
            packet(&[], &[]),
            packet(&[], &[]),
            packet(&[8], &[]),
            packet(&[9], &[9]),
            packet(&[9], &[]),
            packet(&[8], &[]),
        ];
        let workers = [1, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(counted(&words, &workers, 2), (0.5, 0.25));
        // Of one worker nobody is another one.
        assert_eq!(counted(&words, &[0; 8], 2), (0.0, 0.0));
    }
}
