//! What a function's objects are on several workers, as readers outside see them: `run` against one core and against
//! the plan, for a small program of each kind (tests/parts).

use crate::common;
use crate::common::live;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{capture, millrace, refused, success, udp};
use live::Live;
use serde_json::Value;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/parts/{name}.c"))
}

/// 3,000 packets of 200 hosts, no two hosts as often.
fn traffic(path: &Path) {
    let packets = (0..3000_u64).map(|n| {
        let host = (n * n + n / 7) % 200;
        let from = ([10, 0, 0, host as u8], 1000 + (n % 50) as u16);
        (n * 20_000, udp(from, ([192, 0, 2, 1], 53)))
    });
    capture(path, &packets.collect::<Vec<_>>());
}

/// Whatever a reader has after a run: the account, every pinned file and the records, each sorted; and the bytes.
struct Seen {
    account: Value,
    pinned: BTreeMap<String, Vec<String>>,
    records: Vec<String>,
    bytes: Vec<u8>,
}

fn run(name: &str, folder: &Path, cores: &str, words: &[&str]) -> Command {
    let mut command = millrace();
    command.arg("run").arg(program(name)).arg("--in");
    command.arg(folder.join("in.pcap")).arg("--out");
    command.arg(folder.join("out.pcap")).arg("--pin");
    command.arg(folder.join(format!("pins{cores}")));
    command.args(["--pin-all", "--control", "none", "--cores", cores]);
    command
        .arg("--records")
        .arg(folder.join("records"))
        .args(words);
    command
}

fn seen(name: &str, folder: &Path, cores: &str, words: &[&str]) -> Seen {
    let account = success(&mut run(name, folder, cores, words));
    let lines = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines: Vec<_> = text
            .lines()
            .map(|l| l.trim_end_matches(',').to_owned())
            .collect();
        lines.sort();
        lines
    };
    let pins = std::fs::read_dir(folder.join(format!("pins{cores}"))).unwrap();
    let pins = pins.map(|entry| entry.unwrap().path());
    let record = |line: String| {
        let record: Value = serde_json::from_str(&line).unwrap();
        record["bytes"].to_string()
    };
    let mut records: Vec<_> = lines(&folder.join("records"))
        .into_iter()
        .map(record)
        .collect();
    records.sort();
    Seen {
        pinned: pins
            .map(|p| (p.file_stem().unwrap().to_str().unwrap().into(), lines(&p)))
            .collect(),
        records,
        bytes: std::fs::read(folder.join("out.pcap")).unwrap(),
        account,
    }
}

/// Names, live entries and capacities of the objects.
fn objects(account: &Value) -> Vec<[String; 3]> {
    let objects = account["objects"].as_array().unwrap().iter();
    let of = |o: &Value| ["name", "entries", "capacity"].map(|member| o[member].to_string());
    objects.map(of).collect()
}

fn planned(name: &str) -> Value {
    let mut command = millrace();
    command.arg("plan").arg(program(name));
    let plan = success(command.args(["--cores", "3", "--nic", "software"]));
    plan["strategy"].clone()
}

#[test]
fn a_reader_sees_on_several_workers_what_it_sees_on_one() {
    let by_source = ["--steer", "nic=software&fields=source-address"];
    for (name, strategy, words) in [
        ("counted", "spread", &[][..]),
        ("elements", "shard", &[]),
        ("elements", "shard", &by_source),
        ("called", "shard", &[]),
        ("started", "lock", &[]),
        ("started", "lock", &by_source),
    ] {
        let dir = tempfile::tempdir().unwrap();
        traffic(&dir.path().join("in.pcap"));
        assert_eq!(planned(name), strategy, "{name}");
        let one = seen(name, dir.path(), "1", &[]);
        assert!(!one.pinned.is_empty());
        for cores in ["2", "3"] {
            let some = seen(name, dir.path(), cores, words);
            let at = format!("{name} on {cores} {words:?}");
            for same in ["read", "forwarded", "dropped", "passed", "records"] {
                assert_eq!(some.account[same], one.account[same], "{at}: {same}");
            }
            assert_eq!(objects(&some.account), objects(&one.account), "{at}");
            assert_eq!(some.pinned, one.pinned, "{at}");
            assert_eq!(some.records, one.records, "{at}");
            assert!(some.bytes == one.bytes, "{at}");
        }
    }
}

#[test]
fn what_the_plan_keeps_on_one_core_runs_on_no_other_way() {
    let dir = tempfile::tempdir().unwrap();
    traffic(&dir.path().join("in.pcap"));
    // Whether `verify` compares it on one core, or says that no lock can guard it.
    for (name, verified) in [("limited", 0), ("nested", 1)] {
        assert_eq!(planned(name), "alone", "{name}");
        let text = refused(&mut run(name, dir.path(), "3", &[]), 1);
        assert!(text.contains("runs on one core"), "{text}");
        let text = refused(&mut run(name, dir.path(), "3", &["--strategy", "lock"]), 1);
        assert!(text.contains("cannot run as `lock`"), "{text}");
        let mut row = millrace();
        row.arg("run").arg(program(name)).arg("nop");
        refused(
            row.args(common::words(
                "--ports afpacket:nothing0,afpacket:nothing1 --cores 2",
            )),
            1,
        );
        let mut verify = millrace();
        verify.arg("verify").arg(program(name)).arg("--in");
        verify.arg(dir.path().join("in.pcap"));
        let output = verify.args(["--cores", "3"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(verified), "{name}: {text}");
    }
    // By hand only what a key divides.
    let steer = ["--steer", "nic=software&fields=source-address"];
    refused(&mut run("limited", dir.path(), "2", &steer), 1);
    let text = common::output(&mut run("called", dir.path(), "2", &[])).1;
    assert!(text.contains("does not keep jumps"), "{text}");
}

#[test]
fn verify_takes_the_way_of_run() {
    let dir = tempfile::tempdir().unwrap();
    traffic(&dir.path().join("in.pcap"));
    for (name, strategy) in [
        ("counted", "spread"),
        ("called", "shard"),
        ("started", "lock"),
    ] {
        let mut command = millrace();
        command.arg("verify").arg(program(name)).arg("--in");
        command.arg(dir.path().join("in.pcap"));
        let found = success(command.args(["--cores", "3", "--nic", "software"]));
        assert_eq!(found["runs"][0]["strategy"], strategy, "{found}");
    }
}

#[test]
fn sums_are_seen_while_workers_run() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    traffic(&input);
    let word = format!("mem:{}", input.display());
    let function = program("counted");
    let live = Live::of(
        dir.path(),
        &[function.to_str().unwrap()],
        &["--in", &word, "--seconds", "60", "--cores", "3"],
    );
    let read = || {
        let accounts = live.ask(&["ctl", "stats"])["accounts"].take();
        let accounts = accounts.as_array().unwrap();
        let all = accounts.iter().map(|a| a["read"].as_u64().unwrap());
        all.collect::<Vec<_>>()
    };
    let began = std::time::Instant::now();
    while read().iter().any(|n| *n < 1000) {
        assert!(began.elapsed() < live::LONG);
        common::pause();
    }
    let before: u64 = read().iter().sum();
    let exported = common::output(&mut live.command(&["map", "export", "counts"])).0;
    let after: u64 = read().iter().sum();
    let entries: Value = serde_json::from_slice(&exported.stdout).unwrap();
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 256);
    let packets = |e: &Value| e["value"]["packets"].as_u64().unwrap();
    let sum: u64 = entries.iter().map(packets).sum();
    assert!(before <= sum && sum <= after, "{before} {sum} {after}");
    // What each CPU has, and what they come to.
    let one = live.ask(&["map", "get", "counts", "7"]);
    let values = one["values"].as_array().unwrap();
    assert_eq!(values.len(), 3);
    let each: u64 = values.iter().map(|v| v["packets"].as_u64().unwrap()).sum();
    assert_eq!(one["value"]["packets"].as_u64(), Some(each), "{one}");
    // Nobody adds to the last element: what is set counts once.
    live.ask(&["map", "set", "counts", "255", "u64:7 u64:9"]);
    let set = live.ask(&["map", "get", "counts", "255"]);
    assert_eq!(set["value"]["packets"], 7, "{set}");
    live.ask(&["ctl", "stop"]);
    assert_eq!(live.end().1, 0);
}
