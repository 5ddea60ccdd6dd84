//! For how long a cache line goes from one processor to another.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use millrace_dataplane::place;

/// Crossings of one measurement.
const CROSSINGS: u64 = 2_000;
/// Measurements; the least counts, since what else the machine does only adds.
const TURNS: usize = 15;
/// Looks at the line before a worker lets others run: who has no processor of its own would wait for a time slice.
const SPINS: u32 = 2_000;

/// ns; none where this process has one processor.
#[must_use]
pub fn line_ns() -> Option<f64> {
    let [first, second, ..] = *place::cpus() else {
        return None;
    };
    let mut least = f64::INFINITY;
    for _ in 0..TURNS {
        let (line, ready) = (AtomicU64::new(0), Barrier::new(2));
        let work = |cpu: usize, parity: u64| {
            place::pin(cpu);
            ready.wait();
            let begin = Instant::now();
            let mut spins = 0;
            loop {
                let now = line.load(Ordering::Acquire);
                if now >= CROSSINGS {
                    return begin.elapsed();
                }
                if now % 2 == parity {
                    line.store(now + 1, Ordering::Release);
                    spins = 0;
                } else if spins < SPINS {
                    spins += 1;
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
            }
        };
        let took = std::thread::scope(|scope| {
            let work = &work;
            let other = scope.spawn(move || work(second, 1));
            let own = scope.spawn(move || work(first, 0));
            [own.join(), other.join()].into_iter().flatten().max()
        });
        if let Some(took) = took {
            least = least.min(took.as_nanos() as f64 / CROSSINGS as f64);
        }
    }
    least.is_finite().then_some(least)
}
