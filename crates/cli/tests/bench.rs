//! `bench`, `doctor` and `manual`, from outside.

use crate::common;
use serde_json::Value;

use common::{capture, each_byte, json, millrace, output, refused, success};

fn processors() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Allowed processors, not those that the machine has: tests may be confined to one.
fn enough(processors_needed: usize) -> bool {
    let enough = processors() >= processors_needed;
    if !enough {
        println!(
            "skipped: {processors_needed} processors are needed, and there are {}",
            processors()
        );
    }
    enough
}

#[test]
fn a_figure_says_by_which_strategy_it_came_about() {
    if !enough(2) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.pcap");
    let many: Vec<_> = (0..16).flat_map(|_| each_byte()).collect();
    capture(&trace, &many);
    // Leases of nat are of the workers to which their packets come home.
    for (nf, asked, said) in [
        ("policer", "best", "shard"),
        ("policer", "lock", "lock"),
        ("nat", "best", "shard"),
    ] {
        let document = success(
            millrace()
                .args(["bench", nf, "--memory", "--no-limit", "--repeat", "1"])
                .args(common::words(&format!(
                    "--trial 0.05 --cores 2 --strategy {asked} --in"
                )))
                .arg(&trace),
        );
        assert_eq!(document["runs"][0]["strategy"], said);
    }
}

#[test]
fn a_benchmark_gives_rates_latencies_a_table_and_a_page() {
    if !enough(2) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (trace, page, table) = (
        dir.path().join("t.pcap"),
        dir.path().join("b.html"),
        dir.path().join("b.csv"),
    );
    capture(&trace, &each_byte());
    let bench = || {
        let mut command = millrace();
        command
            .args(["bench", "policer", "--repeat", "1", "--trial", "0.1"])
            // Some rate passes, however little of the processors is left for this.
            .args(["--loss", "99"])
            .args(["--dispatch", "0,5000", "--in"])
            .arg(&trace)
            .arg("--html")
            .arg(&page)
            .arg("--csv")
            .arg(&table);
        json(&mut command)
    };
    // But none at all while no worker runs for a whole trial: asked again then.
    let some = |found: &(Value, i32)| {
        let mut runs = found.0["runs"].as_array().into_iter().flatten();
        runs.all(|run| run["mpps"].as_f64() > Some(0.0))
    };
    let mut found = bench();
    for _ in 0..2 {
        if !some(&found) {
            found = bench();
        }
    }
    let (document, status) = found;
    assert_eq!(status, 0);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(document["limit"].as_array().unwrap().len(), 2);
    for run in runs {
        assert_eq!(
            (&run["nf"], &run["strategy"]),
            (&"policer".into(), &"alone".into())
        );
        for field in ["mpps", "p50_ns", "p99_ns", "of_limit", "function_ns"] {
            assert!(run[field].as_f64().unwrap() > 0.0, "{field}: {run}");
        }
        assert_eq!(run["latency"].as_array().unwrap().len(), 2);
    }
    let charged = runs.iter().map(|run| run["charged_ns"].as_f64());
    assert!(charged.eq([Some(0.0), Some(5000.0)]), "{runs:?}");
    assert!(document["conditions"]["dispatch_ns"].as_f64().unwrap() > 0.0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("simulate"), "{page}");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let table = std::fs::read_to_string(table).unwrap();
    // A line for the names, and for each of four configurations one at each of two rates.
    assert_eq!(table.lines().count(), 9);
    let columns = |line: &str| line.split(',').count();
    assert!(table.lines().all(|line| columns(line) == 17), "{table}");
}

#[test]
fn what_cannot_be_measured_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.pcap");
    capture(&trace, &each_byte());
    let bench = |more: &[&str]| {
        let mut command = millrace();
        command
            .args(["bench", "policer", "--in"])
            .arg(&trace)
            .args(more);
        refused(&mut command, 2)
    };
    let too_many = bench(&["--cores", "5000"]);
    assert!(too_many.contains("5000 workers"), "{too_many}");
    assert!(bench(&["--cpus", "4000"]).contains("4000"));
    assert!(bench(&["--rate", "fast"]).contains("not a rate"));
    assert!(bench(&["--nic", "e1000"]).contains("no model"));
    let mut missing = millrace();
    missing.args(["bench", "nop", "--in", "/nonexistent.pcap"]);
    assert!(refused(&mut missing, 2).contains("/nonexistent.pcap"));
}

#[test]
fn doctor_tells_what_is_here() {
    let document = success(millrace().arg("doctor"));
    assert_eq!(document["ready"], true);
    let names: Vec<_> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["name"].as_str().unwrap())
        .collect();
    for name in ["clang", "processors", "huge pages", "pku", "xdp", "drivers"] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let (output, text) = output(millrace().arg("manual").arg(dir.path()));
    assert_eq!(output.status.code(), Some(0), "{text}");
    for page in ["millrace.1", "millrace-run.1", "millrace-bench.1"] {
        let text = std::fs::read_to_string(dir.path().join("man1").join(page)).unwrap();
        assert!(text.contains(".SH OPTIONS"), "{page}");
    }
    let completions = std::fs::read_dir(dir.path().join("completions")).unwrap();
    assert_eq!(completions.count(), 3);
}
