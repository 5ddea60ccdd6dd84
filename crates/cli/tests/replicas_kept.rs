//! `run --state` of replicas: saved at a row's number, taken up by all of them, on other numbers of cores too.

use std::io::Write;
use std::path::Path;

use crate::common;
use crate::common::live::{self, Live};
use common::{Packet, SPLIT, capture, json, millrace, read, refused, root};
use serde_json::Value;

fn talk() -> Vec<Packet> {
    (read(&root().join("captures/talk.pcap")).into_iter())
        .map(|(_, time, bytes)| (time, bytes))
        .collect()
}

/// Most packets are of one flow, which is heavy under any key of the steering.
fn skewed() -> Vec<Packet> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("skewed.pcap");
    let mut command = millrace();
    command.args(["trace", "gen", "--packets", "70000", "--flows", "200"]);
    command.args(["--zipf", "3", "-o"]);
    let (output, said) = common::output(command.arg(&file));
    assert!(output.status.success(), "{said}");
    let all = read(&file).into_iter();
    all.map(|(_, time, bytes)| (time, bytes)).collect()
}

/// What a run puts out, with its account.
fn run(
    dir: &Path,
    name: &str,
    run: &str,
    packets: &[Packet],
    words: &[&str],
) -> (Vec<(u32, u64, Vec<u8>)>, Value) {
    let file = |end: &str| dir.join(format!("{run}{end}"));
    capture(&file(".pcap"), packets);
    let mut command = millrace();
    command.args(["run", name, "--split", SPLIT, "--control", "none", "--in"]);
    command
        .arg(file(".pcap"))
        .arg("--out")
        .arg(file("-out.pcap"));
    let (account, status) = json(command.args(words));
    assert_eq!(
        (status, &account["errors"]),
        (0, &serde_json::json!([])),
        "{name}, {words:?}: {account}"
    );
    (read(&file("-out.pcap")), account)
}

const ONE: &[&str] = &[];
const THREE: &[&str] = &["--strategy", "replicate", "--cores", "3"];
const SEVEN: &[&str] = &["--strategy", "replicate", "--cores", "7"];
const LOCKED: &[&str] = &["--strategy", "lock", "--cores", "3"];

/// A trace in four parts, each by another run: packets, verdicts and entries are those of one run over the whole.
#[test]
fn replicas_go_on_where_the_last_run_was() {
    let talk = talk();
    let quarter = talk.len() / 4;
    for name in ["conntrack", "firewall", "policer", "bridge"] {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state").display().to_string();
        let (whole, of_whole) = run(dir.path(), name, "whole", &talk, ONE);
        let mut out = Vec::new();
        let mut last = Value::Null;
        // From replicas to replicas, on as many workers and others; from and to one core.
        for (at, how) in [THREE, THREE, SEVEN, ONE, SEVEN, THREE].iter().enumerate() {
            let begin = (at * quarter / 2).min(talk.len());
            let end = if at == 5 {
                talk.len()
            } else {
                (at + 1) * quarter / 2
            };
            let words = [how, &["--state", &state][..]].concat();
            let (part, account) = run(dir.path(), name, "part", &talk[begin..end], &words);
            out.extend(part);
            last = account;
        }
        assert!(
            out == whole,
            "{name}: {} and {} packets",
            out.len(),
            whole.len()
        );
        for (a, b) in of_whole["objects"]
            .as_array()
            .unwrap()
            .iter()
            .zip(last["objects"].as_array().unwrap())
        {
            assert_eq!(a["entries"], b["entries"], "{name}");
        }
        // Under a lock workers take it up, too.
        let words = [LOCKED, &["--state", &state][..]].concat();
        run(dir.path(), name, "part", &talk[talk.len() - 1..], &words);
    }
}

/// Heavy keys are at home in what is saved; their owners are those of the run before.
#[test]
fn parts_and_replicas_go_on_where_the_last_run_was() {
    for (name, packets) in [
        ("conntrack", skewed()),
        ("heavyhitter", skewed()),
        ("lb", talk()),
    ] {
        let (first, second) = packets.split_at(packets.len() / 2);
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state").display().to_string();
        let (whole, _) = run(dir.path(), name, "whole", &packets, ONE);
        let words = ["--strategy", "hybrid", "--cores", "3", "--state", &state];
        let mut out = Vec::new();
        for part in [first, second] {
            let (some, account) = run(dir.path(), name, "part", part, &words);
            out.extend(some);
            let keys = account["elephants"].as_array().map_or(0, Vec::len);
            assert_eq!(keys > 0, name != "lb", "{name}: {account}");
        }
        assert!(
            out == whole,
            "{name}: {} and {} packets",
            out.len(),
            whole.len()
        );
        // Of workers that have parts, only the same workers can take them up.
        let mut command = millrace();
        command
            .args(["run", name, "--in"])
            .arg(dir.path().join("part.pcap"));
        command.args(common::words(&format!(
            "--split {SPLIT} --state {state} --strategy hybrid --cores 4"
        )));
        let said = refused(&mut command, 1);
        assert!(said.contains("3 cores before, 4 now"), "{said}");
    }
}

/// What is saved under traffic is the state between two rows: a run that is killed goes on there.
#[test]
fn replicas_that_are_killed_go_on_where_they_were_last_saved() {
    let name = "conntrack";
    for (strategy, packets) in [("replicate", talk()), ("hybrid", skewed())] {
        let (first, second) = packets.split_at(packets.len() / 2);
        let dir = tempfile::tempdir().unwrap();
        let (whole, _) = run(dir.path(), name, "whole", &packets, ONE);
        let (before, _) = run(dir.path(), name, "before", first, ONE);
        let state = dir.path().join("state").display().to_string();
        let lost = dir.path().join("lost.pcap").display().to_string();
        let how = ["--strategy", strategy, "--cores", "3", "--state", &state];
        let words = format!("--in - --out {lost} --split {SPLIT} --state-every 0.05");
        let words = common::words(&words);
        let mut live = Live::of(dir.path(), &[name], &[&words[..], &how].concat());
        let mut pipe = live.child.stdin.take().unwrap();
        let bytes = std::fs::read(dir.path().join("before.pcap")).unwrap();
        pipe.write_all(&bytes).unwrap();
        pipe.flush().unwrap();
        let began = std::time::Instant::now();
        let stats = loop {
            let stats = live.ask(&["ctl", "stats"]);
            let all = stats["accounts"].as_array().unwrap().iter();
            let read: u64 = all.map(|a| a["read"].as_u64().unwrap_or(0)).sum();
            if read == first.len() as u64 {
                break stats["accounts"][0].clone();
            }
            assert!(began.elapsed() < live::LONG, "{name}, {strategy}: {stats}");
        };
        let heavy = strategy == "hybrid";
        let keys = stats["elephants"].as_array().map_or(0, Vec::len);
        assert_eq!(keys > 0, heavy, "{name}: {stats}");
        let file = Path::new(&state).join("state");
        let saved = || std::fs::metadata(&file).and_then(|m| m.modified()).ok();
        for _ in 0..2 {
            let (earlier, began) = (saved(), std::time::Instant::now());
            while saved() == earlier {
                assert!(
                    began.elapsed() < live::LONG,
                    "{name}, {strategy}: nothing is saved"
                );
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        live.child.kill().unwrap();
        live.child.wait().unwrap();
        let (rest, _) = run(dir.path(), name, "rest", second, &how);
        assert!(
            rest == whole[before.len()..],
            "{name}, {strategy}: {}",
            rest.len()
        );
    }
}
