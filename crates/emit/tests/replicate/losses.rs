//! Replicas that lose carriers between the sequencer and their cores (the prefix form): they recover rows from each other
//! (fastpath/sync/recover.h), and are in the end what one core is that sees the rows that any of them saw.

use std::path::{Path, PathBuf};
use std::process::Command;

use millrace_history::effects::replicated;
use millrace_object::Program;
use millrace_object::program::ObjectId;

use super::frames::frames;
use super::{compiled, text};
use crate::support::drive::{Input, Output};
use crate::support::{Bench, Packet, nf};

/// Entries of each table: it is made anew for each pattern, and is full now and then.
const ENTRIES: u64 = 16;

/// Which carriers are lost.
#[derive(Clone, Copy)]
struct Losses {
    cores: u32,
    /// rows of a carrier
    slots: u32,
    /// all patterns of up to so many; where `rate` is 0
    most: u32,
    /// of 1,000
    rate: u32,
    rounds: u32,
    seed: u64,
}

#[derive(Debug, Default)]
struct Found {
    patterns: u32,
    wrong: u32,
    first: u32,
    why: u32,
    recovered: u64,
    gone: u64,
    rows: u64,
}

impl Found {
    fn right(&self, name: &str) {
        let why = ["", "state", "fate", "stopped", "stuck"][self.why as usize];
        assert_eq!(
            self.wrong, 0,
            "{name}: {} of {} patterns, the first is {:#x}: {why}",
            self.wrong, self.patterns, self.first
        );
    }
}

/// The driver, with a fault of recover.h if one is planted.
fn driver(bench: &Bench, planted: Option<u32>) -> PathBuf {
    let planted = planted.map(|fault| format!("-DPLANTED={fault}"));
    let mut flags = vec!["-O2", "-fno-strict-aliasing", "-Wno-unused-function"];
    flags.extend(planted.as_deref());
    bench.driver("replicate/lossy.c", &flags)
}

fn small(bench: &Bench, name: &str) -> Program {
    let mut program = nf::load(bench, name);
    let names: Vec<String> = program.objects.iter().map(|o| o.name.clone()).collect();
    for name in names {
        // Arrays and settings have the size that they have.
        let _ = program.set_capacity(&name, ENTRIES);
    }
    program
}

fn run(
    driver: &Path,
    program: &Program,
    module: &Path,
    losses: Losses,
    packets: &[Packet],
) -> Found {
    let mut input = Input::of(&[
        packets.len() as u32,
        losses.cores,
        losses.slots,
        losses.most,
        losses.rate,
        losses.rounds,
    ]);
    input.long(losses.seed);
    input.objects(program, Some(&|at| replicated(program, ObjectId(at))));
    for packet in packets {
        input.word(packet.program);
        input.packet(packet, None);
    }
    let output = input.feed(Command::new(driver).arg(module));
    let output = output.unwrap_or_else(|said| panic!("{said}"));
    let mut output = Output(&output);
    Found {
        patterns: output.word(),
        wrong: output.word(),
        first: output.word(),
        why: output.word(),
        recovered: output.long(),
        gone: output.long(),
        rows: output.long(),
    }
}

/// How many ways there are to lose up to `most` of `n`.
fn ways(n: u64, most: u64) -> u64 {
    let choose = |k: u64| (0..k).fold(1, |c, i| c * (n - i) / (i + 1));
    (0..=most).map(choose).sum()
}

#[test]
fn all_patterns_of_up_to_four_losses_leave_replicas_alike() {
    let bench = Bench::new();
    let driver = driver(&bench, None);
    let mut gone = 0;
    for (name, cores, slots) in [
        ("ddos", 2, 2),
        ("portknock", 3, 3),
        ("heavyhitter", 2, 4),
        ("tokenbucket", 3, 3),
        ("conntrack", 2, 2),
    ] {
        let program = small(&bench, name);
        let module = compiled(&bench, &text(&program).unwrap(), false);
        let packets = frames(11, 11);
        let losses = Losses {
            cores,
            slots,
            most: 4,
            rate: 0,
            rounds: 0,
            seed: 5,
        };
        let found = run(&driver, &program, &module, losses, &packets);
        eprintln!("{name}: {found:?}");
        assert_eq!(u64::from(found.patterns), ways(11, 4), "{name}");
        found.right(name);
        assert!(found.recovered > 0, "{name}: {found:?}");
        gone += found.gone;
    }
    assert!(gone > 0);
}

#[test]
fn drawn_losses_leave_replicas_alike() {
    let bench = Bench::new();
    let driver = driver(&bench, None);
    let rounds = match std::env::var_os("MILLRACE_LONG") {
        Some(_) => 2000,
        None => 30,
    };
    for name in ["ddos", "tokenbucket", "conntrack", "firewall", "bridge"] {
        let program = small(&bench, name);
        let module = compiled(&bench, &text(&program).unwrap(), false);
        let packets = frames(12, 200);
        for (cores, slots, rate) in [(2, 2, 10), (5, 10, 100), (8, 8, 400), (14, 14, 30)] {
            let seed = u64::from(cores);
            let losses = Losses {
                cores,
                slots,
                most: 0,
                rate,
                rounds,
                seed,
            };
            let found = run(&driver, &program, &module, losses, &packets);
            assert_eq!(
                (found.patterns, found.wrong),
                (rounds, 0),
                "{name}: {found:?}"
            );
            assert!(found.recovered > 0 && found.rows > 0, "{name}: {found:?}");
        }
    }
}

/// The faults of the paper's public code, and one more: an end of a wait that is taken for a loss, and the first log that
/// lost a row decides.
#[test]
fn replicas_that_recover_wrongly_are_found() {
    let bench = Bench::new();
    let program = small(&bench, "conntrack");
    let module = compiled(&bench, &text(&program).unwrap(), false);
    let packets = frames(12, 200);
    let losses = Losses {
        cores: 4,
        slots: 4,
        most: 0,
        rate: 200,
        rounds: 30,
        seed: 1,
    };
    for fault in [2, 6] {
        let driver = driver(&bench, Some(fault));
        let found = run(&driver, &program, &module, losses, &packets);
        assert!(found.wrong > 0, "fault {fault}: {found:?}");
    }
}
