//! Functions that the kernel calls back, and what else programs of our own compare: the kernel, the emitted code and the interpreter do the same
//! with each packet, and leave the same maps.

use std::collections::BTreeSet;

use millrace_dataplane::packet::Fate;
use millrace_object::program::ObjectId;
use millrace_reference::{End, Machine};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Kernel, unavailable};
use millrace_tests::random::Random;

/// Steps of the interpreter for one packet.
const STEPS: u64 = 50_000_000;

/// Packets of 15 to 200 bytes, with a fixed seed; few sources, and a byte that stops a scan now and then.
fn packets(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut below = |n| random.below(n);
    let packet = |_| {
        let len = 15 + below(186);
        let mut bytes: Vec<u8> = (0..len).map(|_| below(255) as u8).collect();
        bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, below(20) as u8]);
        bytes
    };
    (0..count).map(packet).collect()
}

fn verdict(fate: Fate) -> u64 {
    match fate {
        Fate::Aborted => 0,
        Fate::Dropped(_) => 1,
        Fate::Passed => 2,
        Fate::Forwarded(0) => 3,
        other => panic!("{other:?}"),
    }
}

/// Runs a program of tests/programs on the packets in all three; gives the verdicts' counts.
fn agree(name: &str, packets: &[Vec<u8>], shared: &[&str]) -> [usize; 4] {
    let cache = tempfile::tempdir().unwrap();
    let source = root().join(format!("tests/programs/{name}.c"));
    let mut ours = Emitted::of(&cache.path().join("cache"), &source, 1, &[]).unwrap();
    let mut kernel = match unavailable() {
        None => Some(Kernel::load(&ours.object).unwrap()),
        Some(why) => {
            println!("skipped: comparison with the kernel, {why}");
            None
        }
    };
    let program = ours.program.clone();
    let mut machine = Machine::exact(&program);
    let mut counts = [0; 4];
    let mut written = BTreeSet::new();
    for (number, packet) in packets.iter().enumerate() {
        let outcome = ours.run(packet).unwrap();
        let fate = verdict(outcome.fate);
        counts[fate as usize] += 1;
        machine.packet(packet, 0, 0);
        let entry = &program.entries[0];
        let end = machine.run(entry.function, entry.role, STEPS);
        assert_eq!(end, Ok(End::Verdict(fate)), "{name}, packet {number}");
        assert_eq!(outcome.packet, machine.packet_bytes(), "{name}, {number}");
        if let Some(kernel) = &mut kernel {
            let theirs = kernel.run(packet).unwrap();
            assert_eq!(u64::from(theirs.verdict), fate, "{name}, packet {number}");
            assert_eq!(theirs.packet, outcome.packet, "{name}, packet {number}");
        }
        for map in shared {
            let mine = ours.entries(map).unwrap();
            let at = program.objects.iter().position(|o| o.name == *map);
            let interpreted = machine.entries(ObjectId(at.unwrap()));
            assert_eq!(mine, interpreted, "{name}, {number}: {map}, interpreted");
            written.extend((!mine.is_empty()).then_some(*map));
            if let Some(kernel) = &kernel {
                let theirs = kernel.entries(map).unwrap();
                assert_eq!(mine, theirs, "{name}, {number}: {map} in the kernel");
            }
        }
    }
    assert_eq!(
        written.len(),
        shared.len(),
        "{name}: only {written:?} have entries"
    );
    println!(
        "{name}: {} packets agree, verdicts {counts:?}",
        packets.len()
    );
    counts
}

#[test]
fn loops_and_visits_of_maps() {
    let counts = agree("rounds", &packets(400), &["results", "lengths", "sources"]);
    assert!(
        counts[1..].iter().all(|n| *n > 10),
        "{counts:?}: shows nothing"
    );
}

#[test]
fn walks_over_numbers() {
    let counts = agree("walk", &packets(400), &["results"]);
    assert!(
        counts[1..].iter().all(|n| *n > 10),
        "{counts:?}: shows nothing"
    );
}

#[test]
fn timers_in_values_of_maps() {
    let maps = ["results", "hashed", "latest", "row"];
    let counts = agree("timers", &packets(3000), &maps);
    assert!(counts[2] > 500 && counts[3] > 500, "{counts:?}");
}

#[test]
fn loops_that_may_goto_bounds() {
    let counts = agree("may_goto", &packets(60), &["results"]);
    assert!(counts[2] > 10 && counts[3] > 10, "{counts:?}");
}

#[test]
fn texts_of_numbers() {
    let counts = agree("print", &packets(2000), &["texts"]);
    assert!(counts[2] > 100 && counts[3] > 100, "{counts:?}");
}
