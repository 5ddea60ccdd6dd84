//! What the checker admits never trips, and means the same to the interpreter and in emitted code; and
//! with a rule of the checker switched off, this test notices.
//!
//! `MILLRACE_SOUNDNESS_SECONDS` says how long the search goes on (20 otherwise), `MILLRACE_SOUNDNESS_SEED`
//! where it begins (0).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use millrace_check::{Options, Rule, check};
use millrace_object::Insn;
use millrace_tests::soundness::batch::Bench;
use millrace_tests::soundness::{generate, mutate, program};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Programs in a module.
const BATCH: usize = 40;
/// Packets for each program.
const PACKETS: usize = 12;

fn options(disabled: Vec<Rule>) -> Options {
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

/// Rules without a planted bug, and why none could be found by running programs.
const WITHOUT: &[(Rule, &str)] = &[
    (
        Rule::PointerReach,
        "what it alone refuses is refused again by the bounds of what is then accessed, or does no harm",
    ),
    (
        Rule::SeveralObjects,
        "calls are laid out by object; without it there is no object to lay a call out for",
    ),
    (
        Rule::TooManyRounds,
        "bounds the time that a packet takes; what it refuses ends",
    ),
    (
        Rule::TooComplex,
        "bounds the time that a check takes; what it refuses has not been looked at to the end",
    ),
    (Rule::TooLarge, "bounds the memory that a check takes"),
    (Rule::Recursion, NO_FLOW),
    (Rule::CallDepth, NO_FLOW),
    (Rule::FallsOff, NO_FLOW),
    (Rule::JumpOutside, NO_FLOW),
    (Rule::UnknownFunction, NO_FLOW),
    (Rule::UnknownObject, NO_FLOW),
    (
        Rule::BadInstruction,
        "decoding gives no such instruction, and nothing says what it would do",
    ),
];

const NO_FLOW: &str = "without it there are no steps to explore, so nothing could be admitted";

/// Rules that memory outside a value would be touched without: there a sanitizer has to notice, as values and
/// records lie in mappings, and fastpath/base.h tells it where they end.
const MAPPED: [Rule; 2] = [Rule::ValueBounds, Rule::RecordBounds];

/// Programs that break each rule, by rule, each by nothing else: admitted with the rule switched off.
fn breaking(rules: &[Rule], each: usize, most: usize) -> BTreeMap<Rule, Vec<Vec<Insn>>> {
    let mut found: BTreeMap<Rule, Vec<Vec<Insn>>> = BTreeMap::new();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let sound = options(Vec::new());
    for _ in 0..most {
        if rules
            .iter()
            .all(|r| found.get(r).is_some_and(|b| b.len() == each))
        {
            break;
        }
        let insns = if random.random() {
            candidate(&mut random).0
        } else {
            generate::wrong(&mut random)
        };
        let alone = program(std::slice::from_ref(&insns));
        let Err(refusals) = check(&alone, &sound) else {
            continue;
        };
        let broken = refusals.first().map(|r| r.rule);
        let Some(rule) = rules.iter().copied().find(|r| Some(r.name()) == broken) else {
            continue;
        };
        let bodies = found.entry(rule).or_default();
        if bodies.len() < each && check(&alone, &options(vec![rule])).is_ok() {
            bodies.push(insns);
        }
    }
    found
}

#[test]
fn a_planted_bug_in_every_rule_is_found() {
    let exempt = |r: &&Rule| WITHOUT.iter().all(|(w, _)| w != *r);
    let rules: Vec<Rule> = Rule::ALL.iter().filter(exempt).copied().collect();
    let bench = Bench::new().unwrap();
    let programs = breaking(&rules, 10, 40_000);
    let mut missed = Vec::new();
    for rule in rules {
        let name = rule.name();
        let Some(bodies) = programs.get(&rule) else {
            missed.push(format!("{name}: no program breaks it"));
            continue;
        };
        let mut random = ChaCha8Rng::seed_from_u64(8);
        let broken = options(vec![rule]);
        let trial = bench.trial(bodies, &broken, true, &mut random, 60).unwrap();
        let by: Vec<_> = trial.findings().into_iter().map(|(by, _)| by).collect();
        println!("without {name}: {} programs, found by {by:?}", bodies.len());
        if MAPPED.contains(&rule) && !by.contains(&"sanitizer") {
            missed.push(format!("{name}: no sanitizer noticed"));
        }
        if by.is_empty() {
            missed.push(format!("{name}: nothing was noticed"));
        }
    }
    for (rule, why) in WITHOUT {
        println!("{} has no planted bug: {why}", rule.name());
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
