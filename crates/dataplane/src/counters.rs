//! What the processor counts of a worker, where the machine lets it: instructions, and reads and writes that no cache had.

use std::io;
use std::io::ErrorKind;

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter, ReadFormat};

/// Counters of the thread that began them, without what the kernel does for it.
pub struct Counters {
    misses: Counter,
    instructions: Counter,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// reads and writes that the last cache before memory did not have
    pub cache_misses: u64,
    /// instructions that were retired
    pub instructions: u64,
}

impl Counters {
    /// Begins to count the calling thread.
    ///
    /// # Errors
    /// Why nothing is counted, in words: the machine has no counters, or the kernel does not allow it.
    pub fn begin() -> Result<Self, String> {
        let begun = || {
            Ok(Self {
                misses: count(Hardware::CACHE_MISSES)?,
                instructions: count(Hardware::INSTRUCTIONS)?,
            })
        };
        begun().map_err(|e| why(&e))
    }

    fn end(mut self) -> io::Result<Counts> {
        Ok(Counts {
            cache_misses: value(&mut self.misses)?,
            instructions: value(&mut self.instructions)?,
        })
    }

    /// What all workers have counted, whose counters end.
    ///
    /// # Errors
    /// Why one of them has counted nothing, in words.
    pub fn sum(all: impl IntoIterator<Item = Result<Self, String>>) -> Result<Counts, String> {
        let mut sum = Counts::default();
        for counters in all {
            let counts = counters?.end().map_err(|e| why(&e))?;
            sum.cache_misses += counts.cache_misses;
            sum.instructions += counts.instructions;
        }
        Ok(sum)
    }
}

fn count(event: impl Event) -> io::Result<Counter> {
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    let mut builder = Builder::new(event);
    builder.read_format(times).enabled(true).build()
}

/// Of a counter that shared the processor's registers with others, as much as it would have counted alone.
fn value(counter: &mut Counter) -> io::Result<u64> {
    let read = counter.read_full()?;
    let nanoseconds = |t: Option<std::time::Duration>| t.map_or(0, |t| t.as_nanos());
    let (enabled, running) = (
        nanoseconds(read.time_enabled()),
        nanoseconds(read.time_running()),
    );
    if running == 0 {
        return Err(ErrorKind::NotFound.into());
    }
    Ok((u128::from(read.count()) * enabled / running) as u64)
}

/// The level of `kernel.perf_event_paranoid`, as it is read.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            let level = std::fs::read_to_string(PARANOID).unwrap_or_default();
            format!(
                "the kernel does not allow it: kernel.perf_event_paranoid is {}, and 2 or less is needed, or CAP_PERFMON",
                level.trim()
            )
        }
        ErrorKind::NotFound | ErrorKind::Unsupported => {
            "the machine shows no counters (virtual machines seldom do)".to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event::events::Software;
    use std::time::{Duration, Instant};

    /// A clock is a counter that every machine has.
    #[test]
    fn what_a_thread_does_is_counted() {
        let mut clock = match count(Software::TASK_CLOCK) {
            Ok(clock) => clock,
            Err(e) => return println!("skipped: counters of the kernel: {}", why(&e)),
        };
        let (mut sum, began) = (0_u64, Instant::now());
        let mut counted = 0;
        while counted < 3_000_000 && began.elapsed() < Duration::from_secs(30) {
            for _ in 0..10_000 {
                sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
            }
            counted = value(&mut clock).unwrap_or(0);
        }
        assert!(counted >= 3_000_000, "{counted} ns");
    }

    #[test]
    fn instructions_are_counted_or_it_is_said_why_not() {
        match Counters::begin() {
            Ok(counters) => {
                let sum = (0..10_000_u64).fold(0, |a, b| std::hint::black_box(a + b));
                let counts = Counters::sum([Ok(counters)]).map(|c| c.instructions);
                assert!(counts.unwrap_or(0) > 10_000, "{sum}");
            }
            Err(why) => {
                assert!(!why.contains("perf_event_open:"), "{why}");
                println!("skipped: counters of the processor: {why}");
            }
        }
    }
}
