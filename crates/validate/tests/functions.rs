//! Every function in nfs/: every path driven from state that the solver named, packets alone from empty state,
//! and everything as the model says.

use crate::common;

use std::sync::Mutex;
use std::time::Duration;

use common::{built_from, built_small, root};
use millrace_model::Limits;
use millrace_turns::of_today;
use millrace_validate::{Findings, Options, text, validate};

/// Of functions whose paths cover what they do: paths that no execution takes, how many at most, and why not.
const IMPOSSIBLE: &[(&str, usize)] = &[
    // One of 64 slots has been found without its backend, so at most 63 are kept, and the walks that begin then are
    // not 64. That what is kept is less than the slots that were looked at is no bound of one number by a constant.
    ("lb", 1),
    // Where a word is found in a packet, and what a part of one is sealed to, may be anything to the model: most combinations of such
    // places with the lengths that are tested of them are none of a packet.
    ("sidejacking", 144),
    ("tunnel", 45),
];

/// Functions whose paths do not cover what they do, and why: executions are compared with those that there are.
const NOT_COVERED: &[(&str, &str)] = &[(
    "router",
    "it reads bytes for a checksum that writes at computed places may have changed (errors.h)",
)];

/// The functions, by name.
fn functions() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("nfs")).unwrap();
    let folders = folders.map(|f| f.unwrap().path()).filter(|p| p.is_dir());
    let mut names: Vec<String> = folders
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn not_covered(name: &str) -> bool {
    NOT_COVERED.iter().any(|(other, _)| *other == name)
}

fn check(name: &str) -> Findings {
    // More than a debug build takes for the largest on a busy machine.
    let limits = Limits {
        time: Duration::from_secs(120),
        question: Duration::from_secs(20),
        // A part of its paths: all that can be followed take 40 s, and cover no more than a part either.
        steps: if not_covered(name) {
            4000
        } else {
            Limits::default().steps
        },
        ..Limits::default()
    };
    let (program, model, module) = built_small(name, &limits);
    // The thousands of paths of one function are of a few sorts: `millrace model --check` drives all of them.
    let options = Options {
        packets: 2000,
        most: (name == "einat").then_some(400),
        // The last path that is found comes within so many executions of the one before.
        patience: 500,
        ..Options::default()
    };
    validate(&program, &model, &module, &options)
}

#[test]
fn every_function_does_what_its_model_says() {
    let all = of_today("functions against their models", functions(), 5);
    let waiting = Mutex::new(all.clone());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(name) = waiting.lock().unwrap().pop() else {
                        return;
                    };
                    let findings = check(&name);
                    done.lock().unwrap().push(findings);
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(done.len(), all.len());
    for f in &done {
        println!(
            "{}: {} paths{}, {} driven from seeded state, {} left out, {} reached by {} packets alone, {} outside",
            f.name,
            f.paths,
            match (f.exhaustive, f.covers) {
                (true, _) => "",
                (_, true) => " (covering)",
                _ => " (not all)",
            },
            f.driven,
            f.left_out,
            f.reached,
            f.packets,
            f.outside
        );
    }
    for f in &done {
        assert!(f.agree(), "{}", text(f));
        if not_covered(&f.name) {
            assert!(f.driven > 20, "{}", text(f));
            continue;
        }
        assert!(f.exhaustive || f.covers, "{}", text(f));
        // What runs when entries expire no packet starts; `verify` and the packet tests see what it does.
        let expires = |why: &str| why.starts_with("an entry that expires");
        let expiring = f
            .not_driven
            .iter()
            .filter(|r| r.why.as_deref().is_some_and(expires));
        let expiring = expiring.count();
        assert!(
            !f.exhaustive || f.driven + f.left_out + expiring == f.paths,
            "{}",
            text(f)
        );
        let impossible = IMPOSSIBLE.iter().find(|(name, _)| *name == f.name);
        let impossible = impossible.map_or(0, |(_, n)| *n);
        assert!(f.not_driven.len() - expiring <= impossible, "{}", text(f));
        let known = f.not_driven.iter().all(|r| {
            let why = r.why.as_deref();
            let room = |w: &str| w.starts_with("it is of a frame with other room around it");
            why.is_some_and(|w| w.starts_with("it may be impossible") || expires(w) || room(w))
        });
        assert!(known, "{}", text(f));
    }
}

/// A table that was full has room where the packet has deleted another key of it.
#[test]
fn what_a_packet_deletes_leaves_room_for_what_it_puts() {
    let source = root().join("crates/validate/tests/programs/freed.c");
    let (program, model, module) = built_from(&source, &Limits::default());
    let f = validate(&program, &model, &module, &Options::default());
    assert_eq!(f.differing, 0, "{}", text(&f));
    assert!(f.not_reached.len() < f.paths, "{}", text(&f));
}

/// Packets that fill a table also change what stands beside it, in both executions.
#[test]
fn what_fills_a_table_counts_in_both_executions() {
    let source = root().join("crates/validate/tests/programs/beside.c");
    let (program, model, module) = built_from(&source, &Limits::default());
    let f = validate(&program, &model, &module, &Options::default());
    assert!(f.agree() && f.exhaustive, "{}", text(&f));
    assert!(f.not_reached.is_empty(), "{}", text(&f));
}

/// A number that a packet has given back may be the one that it leases next.
#[test]
fn what_a_packet_gives_back_it_may_lease_again() {
    let source = root().join("crates/validate/tests/programs/leased.c");
    let (program, model, module) = built_from(&source, &Limits::default());
    let f = validate(&program, &model, &module, &Options::default());
    assert!(f.agree() && f.exhaustive, "{}", text(&f));
}

/// Whether an entry is evicted by the next one of a packet is not predicted, nor which bytes a record has of the packet.
#[test]
fn what_a_second_entry_may_evict_is_not_predicted() {
    let source = root().join("crates/validate/tests/programs/evicted.c");
    let (program, model, module) = built_from(&source, &Limits::default());
    let f = validate(&program, &model, &module, &Options::default());
    assert!(f.agree() && f.exhaustive, "{}", text(&f));
    assert!(f.not_reached.len() < f.paths, "{}", text(&f));
}

/// A table that is full refuses a prefix in both executions, also where nobody says which keys fill it.
#[test]
fn prefixes_are_put_as_the_model_says() {
    let source = root().join("crates/validate/tests/programs/prefixes.c");
    let (program, model, module) = built_from(&source, &Limits::default());
    let f = validate(&program, &model, &module, &Options::default());
    assert!(f.agree() && f.exhaustive, "{}", text(&f));
    // Which prefix is there to be removed no assignment says; packets find one.
    let reached = |path: usize| f.not_reached.iter().all(|r| r.path != path);
    assert!(f.not_driven.iter().all(|r| reached(r.path)), "{}", text(&f));
}
