//! A program of 48,000 instructions, the size of the largest public one, is checked, emitted and compiled
//! in bounded time: processor time, of this process and of the compilers it starts, since other tests run
//! beside this one. The limits are twice what docs/measurements/public-objects.md promises, for slow machines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use millrace_check::{Options, check};
use millrace_emit::cache::Cache;
use millrace_tests::large::source;

const RULES: u32 = 1470;

const CHECK: Duration = Duration::from_secs(10);
const BUILD: Duration = Duration::from_secs(120);

/// Processor time of this process and of those it has waited for (proc(5), /proc/pid/stat, fields 14 to 17,
/// in hundredths of a second).
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(4)
        .map(|n| n.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(10 * ticks)
}

#[test]
fn the_largest_program_is_checked_and_built_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.c");
    std::fs::write(&file, source(RULES)).unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let begin = spent();
    let mut stages = Vec::new();
    let built = millrace_emit::build(
        &cache,
        &file,
        &[],
        &millrace_emit::Options::default(),
        &mut |stage| stages.push((spent() - begin, format!("{stage:?}"))),
    )
    .unwrap();
    let all = spent() - begin;
    let (at, _) = stages.iter().find(|(_, s)| s == "Emit").unwrap();
    let compiled = all - *at;
    let instructions: usize = built.program.functions.iter().map(|f| f.insns.len()).sum();
    let begin = spent();
    check(&built.program, &Options::default()).unwrap();
    let checked = spent() - begin;
    println!(
        "{instructions} instructions: check {checked:.2?}, emission and compilation {compiled:.2?}"
    );
    for (at, stage) in stages {
        println!("  {at:.2?} {stage}");
    }
    assert!((45_000..55_000).contains(&instructions), "{instructions}");
    assert!(checked < CHECK, "check took {checked:?}");
    assert!(
        compiled < BUILD,
        "emission and compilation took {compiled:?}"
    );
}
