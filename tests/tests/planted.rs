//! Holes put back into the checker, the emitter and the fast path, one at a time: generated programs find each.
//!
//! A program is of interest if it is admitted only with the hole, or if the hole changes what the proof says of its
//! branches, or what is emitted. Then the interpreter sees it do what no admitted program does, or it does something else as emitted code, or
//! a sanitizer notices. `millrace_check::planted` says what the holes are; they are in debug builds only.
//!
//! Programs have numbers, each its own seed; a hunt begins with the first and takes a second or two.
//!
//! `MILLRACE_PLANTED_HOLES=A,B` hunts these alone.

#![cfg(debug_assertions)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use millrace_check::planted::{self, Planted};
use millrace_check::{Checked, Options, check};
use millrace_emit::alone;
use millrace_object::helper::XDP_LOAD_BYTES;
use millrace_object::insn::{AluOp, Insn, Operand, Reg, Width};
use millrace_object::program::Program;
use millrace_tests::soundness::batch::Bench;
use millrace_tests::soundness::generate::{Class, of_class};
use millrace_tests::soundness::interpreted::trips;
use millrace_tests::soundness::lean::program;
use millrace_turns::of_today;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Packets for each program.
const PACKETS: usize = 30;
/// Programs in a module.
const BATCH: usize = 10;
/// Programs that a hunt looks at.
const TRIES: u64 = 6_000;
/// Objects of a program that is compiled, at most.
const FEW: usize = 2;

/// A hole, and the classes of programs that it concerns.
fn classes(hole: Planted) -> &'static [Class] {
    use Class::{Branches, Decided, Iterators, Loops, Numbers, Packet, Places, Stack, Values};
    match hole {
        Planted::RelatedPlacesApart
        | Planted::HalfForWhole
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
        | Planted::LinkKept
        | Planted::MoveKeepsProof
        | Planted::NullTestOfAll
        | Planted::HelperWriteForgotten
        | Planted::LeastSize
        | Planted::AtomicForgotten
        | Planted::StoreKeepsRest
        | Planted::CallKeepsRegisters
        | Planted::LockOfAnyEntry => &[Decided],
        Planted::EmitSignedBranch
        | Planted::EmitSignedLoad
        | Planted::EmitShift
        | Planted::EmitDivision
        | Planted::EmitNarrow => &[Branches, Numbers, Decided],
        Planted::PacketEndOffByOne | Planted::PacketOffsetLeast | Planted::EmitStoreForgotten => {
            &[Packet]
        }
        Planted::OffsetLeast => &[Stack, Values],
        Planted::WidenNothing | Planted::AnyNumberIncluded => &[Loops, Branches],
        Planted::JoinOfOne => &[Branches, Decided],
    }
}

fn options(hole: Option<Planted>) -> Options {
    Options {
        max_visits: 20_000,
        joins_early: hole == Some(Planted::JoinOfOne),
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
            | Planted::EmitStoreForgotten
            | Planted::EmitSpilledOrigin
    )
}

fn outcomes(checked: &Checked) -> impl Iterator<Item = (bool, bool, bool)> {
    let steps = checked.flows.iter().flat_map(|f| &f.steps);
    steps.map(|s| (s.reached, s.outcomes.holds, s.outcomes.fails))
}

/// Whether a hole makes a difference to what the checker says of a program that it admits with it, or to its code.
fn concerned(single: &Program, hole: Planted) -> bool {
    let Ok(weak) = planted::with(Some(hole), || check(single, &options(Some(hole)))) else {
        return false;
    };
    if of_emit(hole) {
        let text = || alone::emit(single, &weak, "batch.c").ok();
        return planted::with(Some(hole), text) != text();
    }
    match check(single, &options(Some(hole))) {
        Err(_) => true,
        Ok(sound) => !outcomes(&sound).eq(outcomes(&weak)),
    }
}

/// The program of a number, of the classes that a hole concerns, and what its packets are drawn from.
fn drawn(classes: &[Class], number: u64) -> (Vec<Insn>, ChaCha8Rng) {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    let class = classes[number as usize % classes.len()];
    (of_class(&mut random, class), random)
}

/// Programs that a hunt came across and that only their code can tell about, with their numbers.
type Waiting = Vec<(u64, Vec<Insn>)>;

/// Compiles what waits, and says who noticed.
fn compiled(bench: &Bench, hole: Planted, waiting: &mut Waiting) -> Option<&'static str> {
    let (numbers, bodies): (Vec<u64>, Vec<Vec<Insn>>) = waiting.drain(..).unzip();
    let mut random = ChaCha8Rng::seed_from_u64(*numbers.first()?);
    let program = program(&bodies);
    let trial = planted::with(Some(hole), || {
        bench.compare(&program, &options(Some(hole)), true, &mut random, PACKETS)
    });
    match trial {
        Ok(trial) => trial.findings().first().map(|f| f.0),
        // Together they are refused, or clang is.
        Err(_) => of_emit(hole).then_some("clang"),
    }
}

/// Whether the interpreter sees what a program does that is admitted with the hole.
fn trips_with(hole: Planted, insns: &[Insn], random: &mut ChaCha8Rng) -> bool {
    planted::with(Some(hole), || {
        trips(insns, &options(Some(hole)), random, PACKETS)
    })
}

/// What found a hole, and after how many programs; none if nothing did.
fn hunt(bench: &Bench, hole: Planted) -> Option<(&'static str, u64)> {
    let classes = classes(hole);
    let mut waiting = Waiting::new();
    for number in 0..TRIES {
        let (insns, mut random) = drawn(classes, number);
        let single = program(std::slice::from_ref(&insns));
        // Of a module's compilation most is for tables.
        if of_emit(hole) && single.objects.len() > FEW || !concerned(&single, hole) {
            continue;
        }
        if trips_with(hole, &insns, &mut random) {
            return Some(("interpreter", number));
        }
        // What the checker gets wrong the interpreter sees; what the emitter does nobody sees but in its code.
        if of_emit(hole) {
            waiting.push((number, insns));
        }
        if waiting.len() == BATCH
            && let Some(by) = compiled(bench, hole, &mut waiting)
        {
            return Some((by, number));
        }
    }
    Some((compiled(bench, hole, &mut waiting)?, TRIES))
}

/// Holes that no program shows, and why.
const HIDDEN: &[(Planted, &str)] = &[
    (
        Planted::IteratorLeft,
        "an iterator that a function left behind is refused where the program ends",
    ),
    (
        Planted::WidenNothing,
        "a loop is followed until its budget is spent, and refused",
    ),
];

#[test]
fn every_hole_that_is_put_back_is_found() {
    let only = std::env::var("MILLRACE_PLANTED_HOLES").unwrap_or_default();
    let wanted = |h: &&Planted| match only.as_str() {
        "" => !HIDDEN.iter().any(|hidden| hidden.0 == **h),
        only => only.split(',').any(|o| o == format!("{h:?}")),
    };
    let holes = Planted::ALL.iter().filter(wanted).copied();
    let holes = match only.as_str() {
        "" => of_today("holes of the checker", holes, 3),
        _ => holes.collect(),
    };
    let missed = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let bench = Bench::new().unwrap();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(hole) = holes.get(at) else { break };
                    let begin = Instant::now();
                    let found = hunt(&bench, *hole);
                    println!("{hole:?}: {found:?}, {:?}", begin.elapsed());
                    if found.is_none() {
                        missed.lock().unwrap().push(format!("{hole:?}"));
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
}

/// A mistake in the fast path's C: the file, what stands there, what stood there before, the class of programs that it
/// concerns, and an instruction that they have.
type InC = (
    &'static str,
    &'static str,
    &'static str,
    Class,
    fn(&Insn) -> bool,
);

fn loads_bytes(insn: &Insn) -> bool {
    matches!(insn, Insn::Call { helper } if *helper == XDP_LOAD_BYTES.number)
}

/// Sets the moment of a timer to one that no signed number says.
fn beyond(insn: &Insn) -> bool {
    let moment = Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst: Reg(2),
        src: Operand::Imm(-5),
    };
    *insn == moment
}

const IN_C: &[InC] = &[
    (
        "helpers/xdp_load_bytes.h",
        "memmove(buffer,",
        "memcpy(buffer,",
        Class::Helpers,
        loads_bytes,
    ),
    (
        "state/timers.h",
        "return ns > TIMERS_LAST ? 0 : ns;",
        "return ns;",
        Class::Timers,
        beyond,
    ),
];

/// Modules for a hole in the fast path, at most.
const MODULES: u64 = 4;

#[test]
fn every_hole_in_the_fast_path_is_found() {
    let bench = Bench::new().unwrap();
    let mut missed = Vec::new();
    for (header, now, before, class, has) in IN_C {
        let begin = Instant::now();
        let mut number = 0;
        let mut found = None;
        for _ in 0..MODULES {
            let from = number;
            let mut bodies = Vec::new();
            while bodies.len() < BATCH {
                let (insns, _) = drawn(&[*class], number);
                number += 1;
                let single = program(std::slice::from_ref(&insns));
                let few = single.objects.len() <= FEW + 1;
                if few && insns.iter().any(has) && check(&single, &options(None)).is_ok() {
                    bodies.push(insns);
                }
            }
            let mut random = ChaCha8Rng::seed_from_u64(from);
            let all = program(&bodies);
            let trial = bench.with_header(header, now, before, || {
                bench.compare(&all, &options(None), true, &mut random, PACKETS)
            });
            if let Some((by, _)) = trial.unwrap().unwrap().findings().first() {
                found = Some((*by, from));
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
