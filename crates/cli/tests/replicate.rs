//! `--strategy replicate` from the command line: what leaves, the account, changes from outside while packets come.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;
use crate::common::live;

use common::{json, millrace, refused, root};
use live::Live;
use serde_json::{Value, json};

fn talk() -> String {
    root().join("captures/talk.pcap").display().to_string()
}

fn run(folder: &std::path::Path, name: &str, out: &str, words: &[&str]) -> Value {
    let out = folder.join(out);
    let mut command = millrace();
    command.args(["run", name, "--in", &talk()]);
    command.args(["--split", "lan=10.0.0.0/24,fd00::/8", "--out"]);
    let (account, status) = json(command.arg(out).args(words));
    assert_eq!(status, 0, "{account}");
    account
}

#[test]
fn replicas_write_what_one_core_does_and_count_objects_once() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["conntrack", "firewall", "heavyhitter"] {
        let one = run(dir.path(), name, "one.pcap", &[]);
        assert_eq!(one.get("replayed"), None);
        for cores in ["2", "14"] {
            let words = ["--strategy", "replicate", "--cores", cores];
            let several = run(dir.path(), name, "several.pcap", &words);
            let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
            assert!(bytes("one.pcap") == bytes("several.pcap"), "{name}");
            for field in ["read", "reasons", "records", "timers_fired", "forwarded"] {
                assert_eq!(one[field], several[field], "{name}: {field}");
            }
            let workers: u64 = cores.parse().unwrap();
            let objects = one["objects"].as_array().unwrap().iter();
            for (a, b) in objects.zip(several["objects"].as_array().unwrap()) {
                assert_eq!(a["entries"], b["entries"]);
                let (a, b) = (a["bytes"].as_u64().unwrap(), b["bytes"].as_u64().unwrap());
                assert_eq!(workers * a, b);
            }
            let replayed = several["replayed"].as_u64().unwrap();
            assert!(replayed > 0 && replayed.is_multiple_of(workers - 1));
        }
    }
}

#[test]
fn what_replication_cannot_serve_is_refused_with_the_line() {
    let mut command = millrace();
    command.args(["run", "nat", "--in", &talk(), "--strategy", "replicate"]);
    let said = refused(command.args(["--cores", "2"]), 1);
    assert!(
        said.contains("nat.c:") && said.contains("forwards:"),
        "{said}"
    );
    let dir = tempfile::tempdir().unwrap();
    let mut command = millrace();
    command.args(["run", "ddos", "--in", &talk(), "--strategy", "replicate"]);
    command.args(["--cores", "2", "--state"]).arg(dir.path());
    let said = refused(&mut command, 2);
    assert!(said.contains("state of replicas is not kept"), "{said}");
}

#[test]
fn maps_and_parameters_change_at_one_place_for_all_replicas() {
    let dir = tempfile::tempdir().unwrap();
    let input = format!("vnic:{}?measure=off&rate=20k&split=lan=10.0.0.0/24", talk());
    let words = ["--in", &input, "--out", "null:", "--seconds", "60"];
    let more = ["--strategy", "replicate", "--cores", "3"];
    let live = Live::of(dir.path(), &["policer"], &[&words[..], &more].concat());
    let sum = |field: &str| {
        let stats = live.ask(&["ctl", "stats"]);
        let accounts = stats["accounts"].as_array().unwrap().clone();
        accounts
            .iter()
            .map(|a| a[field].as_u64().unwrap())
            .sum::<u64>()
    };
    live.until(|stats| stats["replayed"].as_u64() > Some(0));
    // Rows are made with the setting, so that a replica without it would abort the packets of the others.
    let set = live.ask(&["ctl", "set", "rate=1000"]);
    assert_eq!(set["now"], json!(1000).to_string().trim_matches('"'));
    let before = sum("read");
    while sum("read") < before + 3000 {}
    assert_eq!(sum("aborted"), 0);
    assert_eq!(live.ask(&["ctl", "stop"])["state"], "stopping");
    let (account, status) = live.end();
    assert_eq!((status, &account["errors"]), (0, &json!([])), "{account}");
    assert_eq!(account["aborted"], 0);
}

/// Keys that are replicated while others are sharded: readers from outside find them, and what packets write is left to packets.
#[test]
fn heavy_keys_are_seen_and_parameters_change_for_all() {
    let dir = tempfile::tempdir().unwrap();
    // Most packets go to one address.
    let file = dir.path().join("heavy.pcap").display().to_string();
    let mut command = millrace();
    command.args([
        "trace",
        "gen",
        "-o",
        &file,
        "--packets",
        "20000",
        "--flows",
        "50",
    ]);
    command.args(["--zipf", "3", "--one-way", "--no-connections"]);
    assert!(command.output().unwrap().status.success());
    let input = format!("vnic:{file}?measure=off&rate=50k&split=lan=198.18.0.0/15");
    let words = ["--in", &input, "--out", "null:", "--seconds", "60"];
    let more = ["--strategy", "hybrid", "--cores", "3"];
    let live = Live::of(dir.path(), &["policer"], &[&words[..], &more].concat());
    live.until(|stats| stats["replayed"].as_u64() > Some(0));
    // Each flow has come.
    let read = || {
        let stats = live.ask(&["ctl", "stats"]);
        let accounts = stats["accounts"].as_array().unwrap().clone();
        let read = accounts.iter().map(|a| a["read"].as_u64().unwrap());
        read.sum::<u64>()
    };
    while read() < 60_000 {}
    let shown = live.ask(&["map", "export", "buckets"]);
    let entries = shown.as_array().unwrap();
    let one = millrace_entries(&file);
    assert_eq!(entries.len() as u64, one, "{shown}");
    let key = match &entries[0]["key"] {
        Value::String(key) => key.clone(),
        other => other.to_string(),
    };
    let delete = ["map", "delete", "buckets", &key];
    let said = live.command(&delete).output().unwrap();
    let said = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    assert!(said.contains("move while packets come"), "{said}");
    live.ask(&["ctl", "set", "rate=1000"]);
    assert_eq!(live.ask(&["ctl", "stop"])["state"], "stopping");
    let (account, status) = live.end();
    assert_eq!((status, &account["errors"]), (0, &json!([])), "{account}");
    assert_eq!(account["aborted"], 0);
    let elephants = account["elephants"].as_array().unwrap();
    assert!(elephants[0]["packets"].as_u64() > Some(0), "{elephants:?}");
    let mut command = millrace();
    command.args(["run", "policer", "--in", &file, "--strategy", "hybrid"]);
    command.args(["--cores", "2", "--state"]).arg(dir.path());
    let said = self::refused(&mut command, 2);
    assert!(said.contains("state of replicas is not kept"), "{said}");
}

/// Packets from elsewhere come in at the WAN.
const SERVERS: &str = "lan=198.18.0.0/15";

/// Entries that one core has behind a capture.
fn millrace_entries(file: &str) -> u64 {
    let mut command = millrace();
    let (account, _) = json(command.args([
        "run", "policer", "--in", file, "--split", SERVERS, "--out", "null:",
    ]));
    account["objects"]
        .as_array()
        .unwrap()
        .iter()
        .find(|o| o["name"] == "buckets")
        .and_then(|o| o["entries"].as_u64())
        .unwrap()
}
