//! `millrace model`: reports of bundled functions, and what it says when it cannot say all.

use crate::common;

use common::{json, millrace, output, success};

/// The report for people of a function that is followed to its last path.
fn report(nf: &str) -> String {
    let (out, _) = output(millrace().args(["model", nf, "--time", "120"]));
    assert_eq!(out.status.code(), Some(0));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn small_functions_are_reported_to_the_last_path() {
    for nf in ["nop", "sbridge", "bridge"] {
        insta::assert_snapshot!(nf, report(nf));
    }
}

#[test]
fn without_a_solver_every_way_counts() {
    let mut command = millrace();
    let d = success(command.args(["model", "bridge", "--solver", "/nonexistent/z3"]));
    assert_eq!(d["exhaustive"], false);
    // Every way that nobody could rule out is there, so that they cover what happens.
    let why = d["covering"][0].as_str().unwrap();
    assert!(why.contains("apt-get install z3"), "{why}");
    let stations = common::named(&d["objects"], "stations");
    assert_eq!(stations["access"], "read-write");
    assert_eq!(stations["approximate"], false);
}

#[test]
fn a_spent_budget_is_said() {
    let mut command = millrace();
    let (d, _) = json(command.args(["model", "firewall", "--paths", "2"]));
    assert_eq!(d["exhaustive"], false);
    assert!(
        d["bounded"][0]
            .as_str()
            .unwrap()
            .contains("more than 2 paths")
    );
    assert_eq!(d["objects"][0]["access"], "read-write");
}

#[test]
fn every_budget_can_be_set() {
    for (budget, said) in [
        (["--steps", "10"], "more than 10 steps"),
        (["--expressions", "40"], "more than 40 expressions"),
        (["--time", "0"], "more than 0 ms"),
    ] {
        // What others have followed takes no time.
        let own = tempfile::tempdir().unwrap();
        let cache = own.path().join("cache");
        let mut command = millrace();
        command
            .env("MILLRACE_CACHE", cache)
            .args(["model", "firewall"]);
        let d = success(command.args(budget));
        let why = d["bounded"][0].as_str().unwrap();
        assert!(why.contains(said), "{why}");
        assert_eq!(d["objects"][0]["approximate"], true);
    }
    let mut command = millrace();
    let (d, _) = json(command.args(["model", "bridge", "--question", "5000"]));
    assert_eq!(d["exhaustive"], true);
}

#[test]
fn a_model_is_held_against_executions() {
    let mut command = millrace();
    command.args(common::words(
        "model portknock --check --packets 300 --seed 7",
    ));
    let d = success(&mut command);
    assert_eq!(
        (&d["exhaustive"], &d["differing"]),
        (&true.into(), &0.into())
    );
    assert_eq!(d["driven"], d["paths"]);
    // Those asked for under the default settings; more under settings that paths need.
    assert!(d["packets"].as_u64().unwrap() >= 300);
    assert_eq!(d["seed"], 7);
    let rest = d["not_reached"].as_array().unwrap().len() as u64;
    assert_eq!(
        d["reached"].as_u64().unwrap() + rest,
        d["paths"].as_u64().unwrap()
    );
    // The same packets again give the same answer.
    let mut again = millrace();
    again.args(common::words(
        "model portknock --check --packets 300 --seed 7",
    ));
    assert_eq!(json(&mut again), (d, 0));
}

/// What has no prediction is said before anything is compared; records that carry bytes of the packet have one.
#[test]
fn what_is_not_compared_is_no_difference() {
    let check = |file: &str, program: &str| {
        let mut command = millrace();
        command.args([
            "model",
            &format!("tests/programs/{file}"),
            "--program",
            program,
        ]);
        json(command.args(["--check", "--packets", "300"]))
    };
    let (d, status) = check("sequences.c", "sequences");
    assert_eq!(status, 2, "{d}");
    let (d, status) = check("samples.c", "samples");
    assert_eq!((&d["differing"], status), (&0.into(), 0), "{d}");
    assert!(d["reached"].as_u64() > Some(1), "{d}");
}

#[test]
fn without_a_solver_nothing_is_driven_and_nothing_differs() {
    let mut command = millrace();
    command.args(["model", "bridge", "--check", "--packets", "100"]);
    let d = success(command.args(["--solver", "/nonexistent/z3"]));
    assert_eq!(
        (&d["exhaustive"], &d["differing"]),
        (&false.into(), &0.into())
    );
}
