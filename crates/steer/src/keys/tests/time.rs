//! How long the known functions take: the best of some runs, so that a busy machine says the same.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::known::*;
use crate::keys::*;

/// Runs of each.
const RUNS: usize = 5;

fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let once = || {
        let started = Instant::now();
        std::hint::black_box(run());
        started.elapsed()
    };
    std::iter::repeat_with(once).take(RUNS).min().unwrap()
}

#[test]
fn every_key_space_is_solved_within_10_ms() {
    // What is not optimised takes several times as long.
    let bar = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 10 });
    let target = |entries| Target {
        key_bytes: 52,
        entries,
        cores: 16,
    };
    let mut all = all();
    all.push(("two counters", two_counters()));
    all.push(("policer, IPv4 and IPv6", policer_of_both_versions()));
    println!(
        "{:26} {:>9} {:>9} {:>9} {:>9}",
        "ms", "512", "128", "draw", "exposures"
    );
    for (name, known) in all {
        let solve = |entries| solve_for(&known.classes, &known.constraints, target(entries));
        let [wide, narrow] = [512, 128].map(|entries| best(|| solve(entries)));
        assert!(wide < bar && narrow < bar, "{name}: {wide:?}, {narrow:?}");
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let space = solve(512).ok();
        let draw = best(|| space.as_ref().map(|space| space.draw(&mut random)));
        let exposure = best(|| space.as_ref().map(|space| space.exposures()));
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let [wide, narrow, draw, exposure] = [wide, narrow, draw, exposure].map(ms);
        println!("{name:26} {wide:9.3} {narrow:9.3} {draw:9.3} {exposure:9.3}");
    }
}
