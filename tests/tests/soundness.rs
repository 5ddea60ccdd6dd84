//! What the checker admits never trips, and means the same to the interpreter and in emitted code; and
//! with a rule of the checker switched off, this test notices.
//!
//! `MILLRACE_SOUNDNESS_SECONDS` says how long the search goes on (20 otherwise), `MILLRACE_SOUNDNESS_SEED`
//! where it begins (0).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use millrace_check::{Options, check};
use millrace_object::Insn;
use millrace_tests::soundness::batch::Bench;
use millrace_tests::soundness::{generate, mutate, program};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Programs in a module.
const BATCH: usize = 40;
/// Packets for each program.
const PACKETS: usize = 12;

fn options(disabled: Vec<&'static str>) -> Options {
    Options {
        disabled,
        max_visits: 20_000,
        ..Options::default()
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => otherwise,
    }
}

/// A program and, half of the time, one made from it by mutation.
fn candidate(random: &mut ChaCha8Rng) -> (Vec<Insn>, bool) {
    let insns = generate::program(random);
    if random.random() && mutate::comparable(&insns) {
        return (mutate::mutate(random, &insns), true);
    }
    (insns, false)
}

#[test]
fn admitted_programs_do_the_same_everywhere_and_never_trip() {
    let bench = Bench::new().unwrap();
    let limit = Duration::from_secs(number("MILLRACE_SOUNDNESS_SECONDS", 20));
    let seed = number("MILLRACE_SOUNDNESS_SEED", 0);
    let begin = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let options = options(Vec::new());
    let (mut made, mut mutated, mut admitted, mut executions) = (0, 0, 0, 0);
    while begin.elapsed() < limit {
        let mut bodies = Vec::new();
        while bodies.len() < BATCH {
            let (insns, mutant) = candidate(&mut random);
            made += 1;
            if check(&program(std::slice::from_ref(&insns)), &options).is_ok() {
                mutated += u32::from(mutant);
                bodies.push(insns);
            }
        }
        admitted += bodies.len();
        // The sanitizers' code, and in turn what users run.
        let sanitize = admitted / BATCH % 2 == 1;
        let trial = bench
            .trial(&bodies, &options, sanitize, &mut random, PACKETS)
            .unwrap();
        if let Some((by, what)) = trial.findings().first() {
            panic!("seed {seed}, after {admitted} admitted programs, {by}:\n{what}");
        }
        assert_eq!(trial.compared, (bodies.len() * PACKETS) as u64);
        executions += trial.compared;
    }
    println!(
        "{made} programs, {admitted} admitted ({mutated} of them mutated), {executions} executions compared"
    );
    // Enough pass for the test to mean something, and enough do not.
    assert!(admitted > 0 && admitted * 20 > made && admitted * 10 < made * 9);
}

/// Rules of the checker, each of which is switched off in turn. `pointer-reach` is not among them: what it
/// alone refuses is refused again by the bounds of what is then accessed, or does no harm.
const RULES: &[&str] = &[
    "packet-bounds",
    "stack-bounds",
    "value-bounds",
    "record-bounds",
    "constant-write",
    "unchecked-null",
    "uninitialised-stack",
    "record-leak",
    "atomic",
    "pointer-leak",
    "partial-pointer",
    "helper-argument",
];

#[test]
fn a_planted_bug_is_found() {
    let bench = Bench::new().unwrap();
    let sound = options(Vec::new());
    let mut missed = Vec::new();
    for rule in RULES {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let broken = options(vec![rule]);
        let mut bodies = Vec::new();
        for _ in 0..30_000 {
            let (insns, _) = candidate(&mut random);
            let alone = program(std::slice::from_ref(&insns));
            if check(&alone, &sound).is_err() && check(&alone, &broken).is_ok() {
                bodies.push(insns);
            }
            if bodies.len() == 10 {
                break;
            }
        }
        if bodies.is_empty() {
            missed.push(format!("{rule}: no program breaks it"));
            continue;
        }
        let trial = bench
            .trial(&bodies, &broken, true, &mut random, 60)
            .unwrap();
        let by: Vec<_> = trial.findings().into_iter().map(|(by, _)| by).collect();
        println!("without {rule}: {} programs, found by {by:?}", bodies.len());
        // Values and records lie in mappings; fastpath/base.h tells the sanitizer where they end.
        if matches!(*rule, "value-bounds" | "record-bounds") && !by.contains(&"sanitizer") {
            missed.push(format!("{rule}: no sanitizer noticed"));
        }
        if by.is_empty() {
            missed.push(format!("{rule}: nothing was noticed"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
