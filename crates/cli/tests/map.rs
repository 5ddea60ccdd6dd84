//! `--map`: what a map holds at start decides where packets go.

use crate::common;

use std::path::Path;

use common::{capture, each_byte, json, millrace, success};

const ONWARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/onward.c");

/// Runs the packets through `first` with these maps; the account and the exit status.
fn run(input: &Path, maps: &[&str]) -> (serde_json::Value, i32) {
    let mut command = millrace();
    command.args(["run", ONWARD, "--program", "first", "--out", "/dev/null"]);
    command.arg("--in").arg(input);
    for map in maps {
        command.args(["--map", map]);
    }
    json(&mut command)
}

#[test]
fn entries_from_files_are_there_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    capture(&input, &each_byte());
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // Whatever the index, `send`; and there every index is port 0.
    let send = file("next.csv", "# all\n0,send\n1,send\n\n2,send\n3,send\n");
    let ports = file(
        "ports.json",
        r#"[{"key": 0, "value": 1}, {"key": "u32:1", "value": "hex:01000000"}, {"key": 2, "value": 1}, {"key": 3, "value": 1}]"#,
    );
    let (empty, status) = run(&input, &[]);
    assert_eq!(status, 0, "{empty}");
    let (filled, status) = run(
        &input,
        &[&format!("next={send}"), &format!("ports={ports}")],
    );
    assert_eq!(status, 0, "{filled}");
    let forwarded = |account: &serde_json::Value| account["forwarded"].as_u64().unwrap();
    assert!(forwarded(&filled) > forwarded(&empty), "{filled}\n{empty}");
}

/// Flags that a filter's user sets lie below the counter of the same number: all workers have the flags, and each its part of the count.
#[test]
fn flags_below_a_counter_are_there_on_every_worker() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("filters.json");
    std::fs::write(&file, r#"[{"key": 6, "value": 1}]"#).unwrap();
    let program = common::root().join("tests/programs/flagged.c");
    let of = |cores: &str| {
        let mut command = millrace();
        command.arg("run").arg(&program);
        command.args(["--in", "captures/talk.pcap", "--out", "null:"]);
        command.args(["--cores", cores, "--control", "none", "--map"]);
        command.arg(format!("filters={}", file.display()));
        let account = success(&mut command);
        let workers = account["workers"].as_array().unwrap().iter();
        let busy = workers.filter(|w| w["packets"].as_u64() > Some(0)).count();
        assert_eq!(busy.to_string(), cores, "{account}");
        account["dropped"].clone()
    };
    let one = of("1");
    assert!(one.as_u64() > Some(100), "{one}");
    for cores in ["2", "3"] {
        assert_eq!(of(cores), one, "{cores} workers");
    }
}
