//! The checker's claims about registers and stack hold before each step while programs run, in the reference interpreter
//! and in emitted code. With a hole put back, the test fails.
//!
//! `MILLRACE_CLAIMS_SECONDS` says how long the search goes on (5 otherwise), `MILLRACE_CLAIMS_SEED` where it begins (0).
//! Emitted code looks at its claims wherever it is made for the sanitizers: `millrace run --sanitize`, every packet test of
//! the functions, and the tests of public objects.

use std::time::{Duration, Instant};

use millrace_check::planted::{self, Planted};
use millrace_check::{Options, check};
use millrace_object::Insn;
use millrace_object::helper::KTIME_GET_NS;
use millrace_tests::command::millrace;
use millrace_tests::public::{CAPACITY, objects, packets, programs};
use millrace_tests::soundness::batch::{Bench, Trial};
use millrace_tests::soundness::generate::{Class, of_class};
use millrace_tests::soundness::program;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Programs in a module.
const BATCH: usize = 34;
/// Packets for each of them.
const PACKETS: usize = 12;
/// A hole that is put back is found among so many batches of programs: within a minute, of a machine that does little else.
const HUNT: usize = 12;

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => otherwise,
    }
}

fn options() -> Options {
    Options {
        max_visits: 20_000,
        claims: true,
        joins_early: true,
        ..Options::default()
    }
}

fn is_admitted(insns: &Vec<Insn>) -> bool {
    check(&program(std::slice::from_ref(insns)), &options()).is_ok()
}

/// As many programs of these classes that are admitted, and of which this holds.
fn drawn(
    random: &mut ChaCha8Rng,
    classes: &[Class],
    is: impl Fn(&[Insn]) -> bool,
) -> Vec<Vec<Insn>> {
    let mut bodies = Vec::new();
    for class in classes.iter().cycle() {
        let insns = of_class(random, *class);
        if is(&insns) && is_admitted(&insns) {
            bodies.push(insns);
        }
        if bodies.len() == BATCH {
            break;
        }
    }
    bodies
}

/// Whether somebody saw that a claim does not hold: the interpreter, emitted code.
fn claimed_wrongly(trial: &Trial) -> (bool, bool) {
    let says = |what: &Option<String>| what.as_ref().is_some_and(|w| w.contains("not as claimed"));
    (says(&trial.interpreter), says(&trial.sanitizer))
}

#[test]
fn what_is_claimed_holds_in_every_execution() {
    let bench = Bench::new().unwrap();
    let limit = Duration::from_secs(number("MILLRACE_CLAIMS_SECONDS", 5));
    let seed = number("MILLRACE_CLAIMS_SEED", 0);
    let (mut random, begin) = (ChaCha8Rng::seed_from_u64(seed), Instant::now());
    let (mut programs, mut looked_at, mut in_code) = (0, 0, 0);
    while programs == 0 || begin.elapsed() < limit {
        let bodies = drawn(&mut random, &Class::ALL, |_| true);
        let trial = bench.trial(&bodies, &options(), true, &mut random, PACKETS);
        let trial = trial.unwrap();
        if let Some((by, what)) = trial.findings().first() {
            panic!("seed {seed}, after {programs} programs, {by}:\n{what}");
        }
        programs += bodies.len();
        looked_at += trial.claims;
        in_code += trial.in_code;
    }
    println!(
        "{programs} programs of {} classes: {looked_at} claims looked at by the interpreter, {in_code} places in code",
        Class::ALL.len()
    );
    assert!(looked_at > 10_000 && in_code > 1_000);
}

/// Draws programs of some classes with a hole put back until emitted code says of these `words` that they are not so.
fn hunt(hole: Planted, classes: &[Class], words: &str) {
    let bench = Bench::new().unwrap();
    let (mut random, begin) = (ChaCha8Rng::seed_from_u64(1), Instant::now());
    for batch in 1..=HUNT {
        let trial = planted::with(Some(hole), || {
            let bodies = drawn(&mut random, classes, |_| true);
            bench.trial(&bodies, &options(), true, &mut random, PACKETS)
        });
        // Without sanitizers' help: the claim itself speaks.
        if let Ok(trial) = trial
            && claimed_wrongly(&trial).1
            && trial.sanitizer.is_some_and(|said| said.contains(words))
        {
            println!("{hole:?} found in {:?}, batch {batch}", begin.elapsed());
            return;
        }
    }
    panic!("{hole:?} is not found");
}

/// Stack addresses were related by the frame's offsets and computed from objects that lie anywhere.
#[test]
fn a_difference_of_stack_addresses_that_is_another_at_run_time_is_found() {
    hunt(Planted::RelatedPlacesApart, &[Class::Places], ": r");
}

/// Code looks at which byte of a value an address is of.
#[test]
fn an_offset_within_a_value_that_is_another_at_run_time_is_found() {
    hunt(Planted::OffsetLeast, &[Class::Values], "a pointer to bytes");
}

/// Code looks at what lies in the stack.
#[test]
fn a_number_in_the_stack_that_is_another_at_run_time_is_found() {
    hunt(Planted::StoreKeepsRest, &[Class::Stack], "the stack at");
}

fn asks_for_time(insns: &[Insn]) -> bool {
    insns
        .iter()
        .any(|i| matches!(i, Insn::Call { helper } if *helper == KTIME_GET_NS.number))
}

/// The clock promises 0 to 2^63 - 1; a host that says more is noticed by whoever looks, and one that says the most is not.
#[test]
fn a_host_whose_clock_says_more_than_it_promises_is_found() {
    let mut bench = Bench::new().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let begin = Instant::now();
    let bodies = drawn(&mut random, &[Class::Helpers], asks_for_time);
    let packets = PACKETS as u64 * bodies.len() as u64;
    bench.begin = i64::MAX as u64 - 100 * packets;
    let trial = bench.trial(&bodies, &options(), true, &mut random, PACKETS);
    let trial = trial.unwrap();
    assert!(trial.clean(), "{:?}", trial.findings());
    for late in [1 << 63, u64::MAX - 100 * packets] {
        bench.begin = late;
        let trial = bench.trial(&bodies, &options(), true, &mut random, PACKETS);
        let found = claimed_wrongly(&trial.unwrap());
        assert_eq!(found, (true, true), "{late:#x}");
    }
    println!("found in {:?}", begin.elapsed());
}

/// A capture of these packets.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let word = |n: usize| (n as u32).to_le_bytes();
    let mut bytes = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1]
        .map(word)
        .concat();
    for (number, packet) in packets.iter().enumerate() {
        let head = [
            number / 1000,
            number % 1000 * 1000,
            packet.len(),
            packet.len(),
        ];
        bytes.extend(head.map(word).concat());
        bytes.extend(packet);
    }
    bytes
}

/// Programs of others (the folder $MILLRACE_OBJECTS) on captures, mutants of their frames and noise, as sanitized code that
/// looks at every claim.
#[test]
fn programs_of_others_do_what_is_claimed() {
    let Some(files) = objects().unwrap() else {
        println!("skipped: claims of programs of others, MILLRACE_OBJECTS names no folder");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let hostile = folder.path().join("hostile.pcap");
    std::fs::write(&hostile, capture(&packets().unwrap())).unwrap();
    let (mut ran, mut refused, mut wrong) = (0, 0, Vec::new());
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let capacities = [("*".to_owned(), u64::from(CAPACITY))];
        let Ok(program) = millrace_object::load_file_with(&file, &capacities) else {
            refused += 1;
            continue;
        };
        for entry in programs(&program) {
            let mut command = std::process::Command::new("timeout");
            command
                .arg("300")
                .arg(millrace().get_program())
                .arg("run")
                .arg(&file);
            let words = format!("--program {entry} --capacity *=64 --sanitize --in");
            command.args(words.split(' '));
            let output = command.arg(&hostile).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let signs = [
                "not as claimed",
                "AddressSanitizer",
                "runtime error",
                "panicked",
            ];
            match output.status.code() {
                Some(0) => ran += 1,
                Some(1 | 2) if !signs.iter().any(|s| said.contains(s)) => refused += 1,
                status => wrong.push(format!("{name} {entry}: {status:?}\n{said}")),
            }
        }
    }
    println!("{ran} programs of others did what is claimed, {refused} are refused");
    assert!(ran > 0 && wrong.is_empty(), "{}", wrong.join("\n"));
}
