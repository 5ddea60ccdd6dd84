//! Holes put back into the checker, the emitter and the fast path, one at a time: generated programs find each.
//!
//! A program is of interest if it is admitted only with the hole, or if the hole changes what the proof says of its
//! branches, or what is emitted. Then the interpreter sees it do what no admitted program does, or it does something else as emitted code, or
//! a sanitizer notices. `millrace_check::planted` says what the holes are; they are in debug builds only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(debug_assertions)]

use std::time::{Duration, Instant};

use millrace_check::planted::{self, Planted};
use millrace_check::{Checked, Options, check};
use millrace_emit::alone;
use millrace_object::insn::Insn;
use millrace_tests::soundness::batch::Bench;
use millrace_tests::soundness::generate::{Class, of_class};
use millrace_tests::soundness::interpreted::trips;
use millrace_tests::soundness::program;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Packets for each program.
const PACKETS: usize = 30;
/// Programs in a module.
const BATCH: usize = 40;
/// Programs made for a hole, at most.
const MOST: usize = 12_000;
/// The same, as long as only the interpreter looks at them.
const QUICK: usize = 3_000;
/// Modules compiled for a hole, at most.
const MODULES: usize = 4;

/// A hole, and the classes of programs that it concerns.
fn classes(hole: Planted) -> &'static [Class] {
    use Class::{
        Atomics, Borders, Branches, Calls, Helpers, Iterators, Locks, Loops, Nested, Numbers,
        Packet, Places, Records, Stack, Values,
    };
    match hole {
        Planted::RelatedPlacesApart
        | Planted::EntriesAsOne
        | Planted::FramesAsOne
        | Planted::MapsAsOne
        | Planted::EmitSpilledOrigin => &[Places],
        Planted::IteratorOpen | Planted::IteratorLeft => &[Iterators],
        Planted::CarryForgotten
        | Planted::SumUnwrapped
        | Planted::SignForgotten
        | Planted::UpperHalfKept
        | Planted::NarrowTellsWide
        | Planted::SignedAsUnsigned
        | Planted::AtMostIsLess
        | Planted::ArithmeticShiftLogical
        | Planted::RemainderByZero
        | Planted::LinkKept => &[Branches, Numbers, Values, Stack],
        Planted::EmitSignedBranch
        | Planted::EmitSignedLoad
        | Planted::EmitShift
        | Planted::EmitDivision
        | Planted::EmitNarrow => &[Branches, Numbers, Packet],
        Planted::PacketEndOffByOne | Planted::PacketOffsetLeast => &[Packet],
        Planted::OffsetLeast => &[Stack, Values],
        Planted::MoveKeepsProof => &[Borders, Packet],
        Planted::NullTestOfAll => &[Places, Values, Nested],
        Planted::HelperWriteForgotten | Planted::LeastSize => &[Helpers],
        Planted::AtomicForgotten => &[Atomics],
        Planted::StoreKeepsRest => &[Stack, Records, Branches],
        Planted::CallKeepsRegisters => &[Values, Calls],
        Planted::WidenNothing | Planted::AnyNumberIncluded => &[Loops, Branches],
        Planted::LockOfAnyEntry => &[Locks],
    }
}

fn options() -> Options {
    Options {
        max_visits: 20_000,
        ..Options::default()
    }
}

/// Whether a hole is one of the emitter.
fn of_emit(hole: Planted) -> bool {
    matches!(
        hole,
        Planted::RelatedPlacesApart
            | Planted::EmitSignedBranch
            | Planted::EmitSignedLoad
            | Planted::EmitShift
            | Planted::EmitDivision
            | Planted::EmitNarrow
            | Planted::EmitSpilledOrigin
    )
}

fn outcomes(checked: &Checked) -> impl Iterator<Item = (bool, bool, bool)> {
    let steps = checked.flows.iter().flat_map(|f| &f.steps);
    steps.map(|s| (s.reached, s.outcomes.holds, s.outcomes.fails))
}

/// Whether a hole makes a difference to what the checker says of a program that it admits with it.
fn concerned(insns: &[Insn], hole: Planted) -> bool {
    let single = program(&[insns.to_vec()]);
    let Ok(weak) = planted::with(Some(hole), || check(&single, &options())) else {
        return false;
    };
    match check(&single, &options()) {
        Err(_) => true,
        Ok(sound) => {
            let text = |checked| alone::emit(&single, checked, "batch.c").ok();
            !outcomes(&sound).eq(outcomes(&weak))
                || of_emit(hole) && planted::with(Some(hole), || text(&weak)) != text(&sound)
        }
    }
}

/// Whether the interpreter alone finds a hole, and after how many programs: that takes no compiler.
fn interpreted(hole: Planted) -> Option<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let classes = classes(hole);
    (1..=QUICK).find(|made| {
        let insns = of_class(&mut random, classes[made % classes.len()]);
        concerned(&insns, hole) && trips_with(hole, &insns, &mut random)
    })
}

/// Whether the interpreter sees what a program does that is admitted with the hole.
fn trips_with(hole: Planted, insns: &[Insn], random: &mut ChaCha8Rng) -> bool {
    planted::with(Some(hole), || trips(insns, &options(), random, PACKETS))
}

/// What found a hole, after how many programs; none if nothing did.
fn hunt(bench: &Bench, hole: Planted) -> Option<(&'static str, usize)> {
    if !of_emit(hole)
        && let Some(made) = interpreted(hole)
    {
        return Some(("interpreter", made));
    }
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let classes = classes(hole);
    let mut bodies = Vec::new();
    let mut modules = 0;
    for made in 1..=MOST {
        let insns = of_class(&mut random, classes[made % classes.len()]);
        if concerned(&insns, hole) {
            if trips_with(hole, &insns, &mut random) {
                return Some(("interpreter", made));
            }
            bodies.push(insns);
        }
        if bodies.len() == BATCH || made == MOST && !bodies.is_empty() {
            let trial = planted::with(Some(hole), || {
                bench.trial(&bodies, &options(), true, &mut random, PACKETS)
            });
            match trial {
                Ok(trial) => {
                    if let Some((by, _)) = trial.findings().first() {
                        return Some((by, made));
                    }
                }
                // Together they are refused, or clang is.
                Err(_) if of_emit(hole) => return Some(("clang", made)),
                Err(_) => {}
            }
            bodies.clear();
            modules += 1;
            if modules == MODULES {
                break;
            }
        }
    }
    None
}

/// The holes that were seen to be found; the others of `Planted::ALL` join them as they are.
const HOLES: &[Planted] = &[
    Planted::RelatedPlacesApart,
    Planted::EntriesAsOne,
    Planted::MapsAsOne,
];

#[test]
fn every_hole_that_is_put_back_is_found() {
    let bench = Bench::new().unwrap();
    let mut missed = Vec::new();
    let mut longest = Duration::ZERO;
    for hole in HOLES {
        let begin = Instant::now();
        match hunt(&bench, *hole) {
            Some((by, made)) => println!("{hole:?}: {by}, {made} programs, {:?}", begin.elapsed()),
            None => {
                println!("{hole:?}: MISSED, {:?}", begin.elapsed());
                missed.push(format!("{hole:?}"));
            }
        }
        longest = longest.max(begin.elapsed());
    }
    println!("{} holes, the longest took {:?}", HOLES.len(), longest);
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
}

/// Mistakes in the fast path's C that were seen to be found: the file, what stands there, and what stood there before.
const IN_C: &[(&str, &str, &str, Class)] = &[(
    "helpers/xdp_load_bytes.h",
    "memmove(buffer,",
    "memcpy(buffer,",
    Class::Helpers,
)];

#[test]
fn every_hole_in_the_fast_path_is_found() {
    let bench = Bench::new().unwrap();
    let mut missed = Vec::new();
    for (header, now, before, class) in IN_C {
        let begin = Instant::now();
        let mut random = ChaCha8Rng::seed_from_u64(6);
        let mut found = None;
        for made in 1..=MODULES {
            let mut bodies = Vec::new();
            while bodies.len() < BATCH {
                let insns = of_class(&mut random, *class);
                if check(&program(std::slice::from_ref(&insns)), &options()).is_ok() {
                    bodies.push(insns);
                }
            }
            let trial = bench.with_header(header, now, before, || {
                bench.trial(&bodies, &options(), true, &mut random, PACKETS)
            });
            if let Some((by, _)) = trial.unwrap().unwrap().findings().first() {
                found = Some((*by, BATCH * made));
                break;
            }
        }
        println!("{header}: {found:?}, {:?}", begin.elapsed());
        if found.is_none() {
            missed.push(*header);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
