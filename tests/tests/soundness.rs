//! Soundness: admitted programs never trip a sanitizer, and mean the same in the interpreter and in emitted code. With a
//! rule of the checker switched off, the test fails.
//!
//! `MILLRACE_SOUNDNESS_SECONDS` says how long the search goes on (5 otherwise), `MILLRACE_SOUNDNESS_SEED`
//! where it begins (0).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use millrace_check::{Options, Rule, check};
use millrace_object::Insn;
use millrace_object::helper::{EXPANSION, HELPERS};
use millrace_object::insn::BUDGET;
use millrace_tests::soundness::batch::Bench;
use millrace_tests::soundness::generate::Class;
use millrace_tests::soundness::interpreted::trips;
use millrace_tests::soundness::{generate, mutate, program};
use millrace_turns::of_today;
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
    let limit = Duration::from_secs(number("MILLRACE_SOUNDNESS_SECONDS", 5));
    let seed = number("MILLRACE_SOUNDNESS_SEED", 0);
    let begin = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut options = options(Vec::new());
    let (mut made, mut mutated, mut admitted, mut executions, mut fired) = (0, 0, 0, 0, 0);
    while begin.elapsed() < limit {
        let mut bodies = Vec::new();
        // Half of all programs with paths that are joined wherever they can be.
        options.joins_early = admitted / BATCH % 4 >= 2;
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
        fired += trial.fired;
    }
    println!(
        "{made} programs, {admitted} admitted ({mutated} of them mutated), {executions} executions compared, \
         {fired} timers fired"
    );
    assert!(fired > 0, "no timer fired");
    // Enough pass for the test to mean something, and enough do not.
    assert!(admitted > 0 && admitted * 20 > made && admitted * 10 < made * 9);
}

/// Programs in a module where it is of one class.
const CLASS_BATCH: usize = 500;
/// Programs of each class where the module is of all.
const OF_EACH: usize = 8;

/// So many programs of a class that the checker admits, and how many were made for them.
fn admitted(random: &mut ChaCha8Rng, class: Class, wanted: usize) -> (Vec<Vec<Insn>>, usize) {
    let (mut bodies, mut made) = (Vec::new(), 0);
    while bodies.len() < wanted {
        let insns = generate::of_class(random, class);
        made += 1;
        if check(&program(std::slice::from_ref(&insns)), &options(Vec::new())).is_ok() {
            bodies.push(insns);
        }
    }
    (bodies, made)
}

fn never_trips(bench: &Bench, bodies: &[Vec<Insn>], random: &mut ChaCha8Rng, what: &str) {
    let trial = bench
        .trial(bodies, &options(Vec::new()), true, random, PACKETS)
        .unwrap();
    if let Some((by, finding)) = trial.findings().first() {
        panic!("{what}, {by}:\n{finding}");
    }
    assert_eq!(trial.compared, (bodies.len() * PACKETS) as u64);
}

/// Admitted programs of each class, as emitted under sanitizers and by the interpreter in two layouts of memory: a few of
/// each, or `MILLRACE_SOUNDNESS_PROGRAMS` of the class that `MILLRACE_SOUNDNESS_CLASS` names or of all.
#[test]
fn programs_of_every_class_never_trip() {
    let bench = Bench::new().unwrap();
    let seed = number("MILLRACE_SOUNDNESS_SEED", 0);
    let wanted = number("MILLRACE_SOUNDNESS_PROGRAMS", 0) as usize;
    if wanted == 0 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let all = Class::ALL.map(|class| admitted(&mut random, class, OF_EACH).0);
        never_trips(&bench, &all.concat(), &mut random, "all classes");
        println!("{} programs of {} classes", all.concat().len(), all.len());
        return;
    }
    let only = std::env::var("MILLRACE_SOUNDNESS_CLASS").ok();
    for class in Class::ALL {
        if only.as_ref().is_some_and(|o| *o != format!("{class:?}")) {
            continue;
        }
        let begin = Instant::now();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut made, mut run) = (0, 0);
        while run < wanted {
            let (bodies, of) = admitted(&mut random, class, CLASS_BATCH.min(wanted - run));
            made += of;
            run += bodies.len();
            let what = format!("{class:?}, seed {seed}, after {run} admitted programs");
            never_trips(&bench, &bodies, &mut random, &what);
        }
        println!(
            "{class:?}: {run} admitted of {made}, {} executions, none tripped, {:.1} s",
            run * PACKETS,
            begin.elapsed().as_secs_f64()
        );
    }
}

/// The numbers of the helpers that a program calls.
fn calls(insns: &[Insn]) -> impl Iterator<Item = u32> {
    insns.iter().filter_map(|insn| match insn {
        Insn::Call { helper } => Some(*helper),
        _ => None,
    })
}

#[test]
fn admitted_programs_call_every_helper_and_make_every_sort_of_loop() {
    let own = HELPERS.iter().map(|h| h.number);
    let mut missing: BTreeSet<u32> = own.filter(|number| *number < EXPANSION).collect();
    assert!(missing.len() > 60);
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut budgets = 0;
    for _ in 0..40_000 {
        let insns = generate::program(&mut random);
        let budgeted = matches!(insns.first(), Some(Insn::Alu { dst: BUDGET, .. }));
        let wanted = budgeted && budgets < 5 || calls(&insns).any(|h| missing.contains(&h));
        if wanted && check(&program(std::slice::from_ref(&insns)), &options(Vec::new())).is_ok() {
            calls(&insns).for_each(|h| {
                missing.remove(&h);
            });
            budgets += usize::from(budgeted);
        }
        if missing.is_empty() && budgets >= 5 {
            return;
        }
    }
    panic!("never called: {missing:?}; {budgets} loops bounded by may_goto");
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

/// Without these, memory is touched that is not the program's: there a sanitizer has to notice, too. Values and
/// records lie in mappings; fastpath/base.h tells it where they end. For the others the interpreter is enough.
const MEMORY: [Rule; 5] = [
    Rule::PacketBounds,
    Rule::ValueBounds,
    Rule::RecordBounds,
    Rule::UncheckedNull,
    Rule::NotAPointer,
];

/// Programs for each rule, at most.
const EACH: usize = 10;
/// Packets for each of them.
const MANY: usize = 60;

/// What has been found for a rule.
#[derive(Default)]
struct Broken {
    /// programs that break it and nothing else: admitted with the rule switched off
    bodies: Vec<Vec<Insn>>,
    /// of so many, which come first, the interpreter has seen that they do what no admitted program may
    trips: usize,
    /// programs tried
    tried: usize,
}

/// Programs that break each rule. The search goes on for a rule while the interpreter notices nothing: some
/// mistakes only show between interpreter and emitted code, and for those the programs found count.
fn breaking(rules: &[Rule]) -> BTreeMap<Rule, Broken> {
    let mut found: BTreeMap<Rule, Broken> = BTreeMap::new();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let sound = options(Vec::new());
    for made in 0..40_000 {
        let done = |r: &Rule| {
            let wanted = if MEMORY.contains(r) { EACH } else { 1 };
            let enough = |b: &Broken| b.trips >= wanted || b.tried >= 2 * EACH;
            found.get(r).is_some_and(enough)
        };
        let enough = rules.iter().all(done);
        // The rare ones are worth a while, not any time.
        if enough || made >= 20_000 && rules.iter().all(|r| found.contains_key(r)) {
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
        let off = options(vec![rule]);
        if done(&rule) || check(&alone, &off).is_err() {
            continue;
        }
        let broken = found.entry(rule).or_default();
        broken.tried += 1;
        if trips(&insns, &off, &mut random, MANY) {
            broken.bodies.insert(broken.trips, insns);
            broken.trips += 1;
        } else {
            broken.bodies.push(insns);
        }
        broken.bodies.truncate(EACH);
    }
    found
}

#[test]
fn a_planted_bug_in_every_rule_is_found() {
    let exempt = |r: &&Rule| WITHOUT.iter().all(|(w, _)| w != *r);
    let rules: Vec<Rule> = Rule::ALL.iter().filter(exempt).copied().collect();
    let bench = Bench::new().unwrap();
    let begin = Instant::now();
    // Of all rules, also where others have their turn: what is drawn for one depends on what was drawn before it.
    let programs = breaking(&rules);
    println!("programs found in {:?}", begin.elapsed());
    let mut missed = Vec::new();
    for rule in of_today("planted mistakes of the checker", rules, 5) {
        let name = rule.name();
        let Some(broken) = programs.get(&rule) else {
            missed.push(format!("{name}: no program breaks it"));
            continue;
        };
        let by: Vec<_> = if broken.trips > 0 && !MEMORY.contains(&rule) {
            vec!["interpreter"]
        } else {
            let mut random = ChaCha8Rng::seed_from_u64(8);
            let off = options(vec![rule]);
            let trial = bench.trial(&broken.bodies, &off, true, &mut random, MANY);
            let trial = trial.unwrap();
            trial.findings().into_iter().map(|(by, _)| by).collect()
        };
        println!(
            "without {name}: {} programs, found by {by:?}",
            broken.bodies.len()
        );
        if MEMORY.contains(&rule) && !by.contains(&"sanitizer") {
            missed.push(format!("{name}: no sanitizer noticed"));
        }
        if by.is_empty() {
            missed.push(format!("{name}: nothing was noticed"));
        }
    }
    println!("in all {:?}", begin.elapsed());
    for (rule, why) in WITHOUT {
        println!("{} has no planted bug: {why}", rule.name());
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
