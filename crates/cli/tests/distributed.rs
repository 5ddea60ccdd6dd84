//! Numbers of which each worker has a part, and which packets read late (`DISTRIBUTED` with a staleness).

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{Faulty, millrace, over, success};
use serde_json::Value;

fn relaxed(run: &Value, name: &str) -> u64 {
    let all = run["relaxations"].as_array().unwrap();
    let found = all.iter().find(|r| r["name"] == name);
    found.map_or(0, |r| r["packets"].as_u64().unwrap())
}

/// Sets on their own cores, numbers in parts: what each packet saw of the others is an input of the sequential program, and within
/// the staleness.
#[test]
fn parts_are_read_within_the_staleness() {
    for order in ["ingress", "seeded", "threads"] {
        let words = ["--cores", "1,2,8", "--schedule", order, "--set", "least=20"];
        let found = success(&mut over("verify", "antiddos", &words));
        assert_eq!(found["equal"], true, "{order}: {found}");
        let runs = found["runs"].as_array().unwrap();
        let of = |name: &str| runs.iter().map(|run| relaxed(run, name)).sum::<u64>();
        assert!(of("staleness") > 0, "{order}: {found}");
        assert!(of("capacity") == 0, "{order}: {found}");
    }
}

#[test]
fn the_plan_says_how_late_packets_read() {
    let found = success(millrace().args(["plan", "antiddos", "--cores", "4"]));
    let of = |name| common::named(&found["objects"], name);
    assert_eq!(of("counts")["treatment"], "merge");
    assert_eq!(of("flows")["treatment"], "shard");
    let relaxations = found["relaxations"].as_array().unwrap();
    let stale = relaxations.iter().find(|r| r["name"] == "staleness");
    assert_eq!(stale.unwrap()["object"], "counts");
}

/// The same function, its numbers in one copy.
fn one_copy(folder: &Path) -> String {
    let text = std::fs::read_to_string(common::root().join("nfs/antiddos/antiddos.c")).unwrap();
    let exact = text.replace("MICROSECONDS(100)", "0");
    assert_ne!(exact, text);
    let file = folder.join("exact.c");
    std::fs::write(&file, exact).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_staleness_of_zero_is_one_copy() {
    let folder = tempfile::tempdir().unwrap();
    let exact = one_copy(folder.path());
    let words = ["--cores", "2,4", "--set", "least=20"];
    let set = [&words[..], &["--set", "counts.staleness=0"]].concat();
    for (nf, words) in [(exact.as_str(), &words[..]), ("antiddos", &set)] {
        is_one_copy(&mut over("verify", nf, words));
    }
}

fn is_one_copy(command: &mut Command) {
    let found = success(command);
    assert_eq!(found["equal"], true, "{found}");
    for run in found["runs"].as_array().unwrap() {
        assert_eq!(
            (relaxed(run, "staleness"), &run["strategy"]),
            (0, &"lock".into())
        );
    }
}

/// A part that is torn or not published, one that counts twice, and parts that are kept for too long (fastpath/sync/parts.h).
#[test]
fn planted_faults_are_found() {
    let Some(faulty) = Faulty::new() else { return };
    for fault in ["2", "3", "4"] {
        let words = ["--cores", "4", "--set", "least=20"];
        let mut command = over("verify", "antiddos", &words);
        faulty.is_found(&mut command, "PARTS_FAULT", fault);
    }
}
