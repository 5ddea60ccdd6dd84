//! Programs and solvers that would take for ever: an answer comes within the budget, it names what stood in the
//! way, and it says what state is touched.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use millrace_model::model::{Outcome, Use};
use millrace_model::{Limits, Model, model};
use millrace_turns::its_turn;
use support::Loaded;

/// What an answer may take beyond its budget, on a machine that has other things to do.
const GRACE: Duration = Duration::from_secs(10);

/// The model, and that it took no longer than allowed.
fn within(loaded: &Loaded, limits: &Limits) -> Model {
    let began = Instant::now();
    let model = model(&loaded.program, &loaded.checked, limits);
    let took = began.elapsed();
    assert!(took < limits.time + GRACE, "{took:?}");
    model
}

fn why(model: &Model) -> String {
    match &model.entries[0].outcome {
        Outcome::Exhaustive => panic!("exhaustive"),
        Outcome::Covering { why } | Outcome::Bounded { why } => why.clone(),
    }
}

/// The report of the first object does without the paths, unless they cover what happens.
fn touched(model: &Model) {
    let object = &model.objects[0];
    assert_eq!(object.approximate, !model.covers());
    match object.approximate {
        true => assert_eq!(object.usage, Use::ReadWrite),
        false => assert!(matches!(object.usage, Use::ReadWrite | Use::Additive)),
    }
}

/// Kilobytes that this process has had in memory at most.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn more_paths_than_there_is_time_for() {
    let Some(loaded) = support::load("explode") else {
        return;
    };
    // Where it need not be tried with fewer.
    let cut = Some(16);
    for (limits, said) in [
        (
            Limits {
                paths: 50,
                cut,
                ..Limits::default()
            },
            "more than 50 paths",
        ),
        (
            Limits {
                steps: 500,
                cut,
                ..Limits::default()
            },
            "more than 500 steps",
        ),
        (
            Limits {
                expressions: 150,
                cut,
                ..Limits::default()
            },
            "more than 150 expressions",
        ),
        (
            Limits {
                time: Duration::from_secs(2),
                paths: usize::MAX,
                steps: u64::MAX,
                ..Limits::default()
            },
            "more than 2000 ms",
        ),
    ] {
        let model = within(&loaded, &limits);
        // Where there is time enough they are cut where they meet.
        let cut =
            limits.paths == usize::MAX && why(&model).ends_with("paths are cut where they meet");
        assert!(
            cut || why(&model) == format!("the budget is spent: {said}"),
            "{}",
            why(&model)
        );
        touched(&model);
    }
    assert!(peak() < 800_000, "{} KiB", peak());
}

#[test]
fn a_question_that_is_too_hard() {
    let Some(loaded) = support::load("hard") else {
        return;
    };
    let limits = Limits {
        question: Duration::from_millis(200),
        ..Limits::default()
    };
    let model = within(&loaded, &limits);
    assert!(
        why(&model).contains("some paths may be impossible"),
        "{}",
        why(&model)
    );
    touched(&model);
    // The path that nobody could decide on is there, and says so.
    assert!(model.entries[0].paths.iter().any(|p| p.undecided));
}

#[test]
fn a_loop_whose_number_grows() {
    let Some(loaded) = support::load("long") else {
        return;
    };
    let limits = Limits {
        time: Duration::from_secs(3),
        question: Duration::from_millis(200),
        ..Limits::default()
    };
    let model = within(&loaded, &limits);
    assert!(
        why(&model).starts_with("the budget is spent"),
        "{}",
        why(&model)
    );
    assert!(peak() < 800_000, "{} KiB", peak());
}

#[test]
fn a_choice_as_deep_as_a_loop_is_long() {
    let Some(loaded) = support::load("chain") else {
        return;
    };
    let limits = Limits {
        time: Duration::from_secs(4),
        question: Duration::from_millis(200),
        ..Limits::default()
    };
    // All paths or not: what counts is that nothing follows the choice to its end by recursion.
    let model = within(&loaded, &limits);
    assert!(!model.entries[0].paths.is_empty() || why(&model).starts_with("the budget is spent"));
    assert!(peak() < 1_500_000, "{} KiB", peak());
}

#[test]
fn parts_that_are_shared_are_taken_apart_once() {
    let Some(loaded) = support::load("shared") else {
        return;
    };
    let limits = Limits {
        time: Duration::from_secs(6),
        question: Duration::from_millis(200),
        ..Limits::default()
    };
    within(&loaded, &limits);
    assert!(peak() < 1_500_000, "{} KiB", peak());
}

#[test]
fn a_way_out_at_every_step() {
    let Some(loaded) = support::load("nested") else {
        return;
    };
    let model = within(&loaded, &Limits::default());
    let paths = model.entries[0].paths.len();
    assert!(paths > 600, "{paths} paths, {:?}", model.entries[0].outcome);
}

#[test]
fn as_many_instructions_as_the_largest_programs_have() {
    if !its_turn("the model of a program of 48,000 instructions", 0, 3) {
        return;
    }
    let Some(loaded) = support::load("large") else {
        return;
    };
    let flow = &loaded.program.functions[0];
    assert!(flow.insns.len() > 48_000, "{}", flow.insns.len());
    let limits = Limits {
        time: Duration::from_secs(50),
        ..Limits::default()
    };
    let model = within(&loaded, &limits);
    let entry = &model.entries[0];
    println!("{:?}, {:?}", entry.outcome, entry.took);
    // Both ways of each of 8192 decisions meet again.
    assert_eq!(entry.outcome, Outcome::Exhaustive);
    assert_eq!(entry.paths.len(), 2);
    assert!(peak() < 1_500_000, "{} KiB", peak());
}

#[test]
fn more_time_than_a_clock_counts() {
    let Some(loaded) = support::load("stateful") else {
        return;
    };
    let limits = Limits {
        time: Duration::MAX,
        ..Limits::default()
    };
    let model = model(&loaded.program, &loaded.checked, &limits);
    assert!(!model.entries[0].paths.is_empty());
}

/// A command that takes questions and answers so.
fn solver(folder: &std::path::Path, script: &str) -> PathBuf {
    let path = folder.join("solver");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[test]
fn solvers_that_are_none() {
    let Some(loaded) = support::load("hard") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, script, said) in [
        ("silent", "exec sleep 60", "did not answer"),
        (
            "chatty",
            "while :; do echo hello || exit; sleep 0.1; done",
            "hello",
        ),
        ("gone", "exit 0", "the solver"),
        (
            "liar",
            "while read -r line; do case $line in *check-sat*) echo sat;; *get-value*) echo '((s0 #x00))';; esac; done",
            "assignment",
        ),
    ] {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        let limits = Limits {
            solver: Some(solver(&place, script)),
            question: Duration::from_millis(100),
            time: Duration::from_secs(6),
            ..Limits::default()
        };
        let model = within(&loaded, &limits);
        let why = why(&model);
        assert!(
            why.contains(said) || why.contains("budget"),
            "{name}: {why}"
        );
        touched(&model);
    }
    let limits = Limits {
        solver: Some(folder.path().join("nowhere")),
        ..Limits::default()
    };
    let model = within(&loaded, &limits);
    assert!(why(&model).contains("cannot be started"), "{}", why(&model));
    touched(&model);
}
