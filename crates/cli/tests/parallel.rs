//! `millrace run --cores`, over captures and the software NIC.

use crate::common;
use crate::common::live;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use common::{GATE, SPLIT, capture, millrace, named, refused, success, symmetric, udp};
use live::{LONG, Live};
use serde_json::Value;

/// The firewall over the bundled trace, with these words more.
fn firewall(out: &Path, words: &[&str]) -> Command {
    let mut command = millrace();
    command
        .args(["run", "firewall", "--in", "captures/talk.pcap"])
        .args(["--split", SPLIT, "--control", "none", "--out"])
        .arg(out)
        .args(words);
    command
}

fn flows(account: &Value) -> &Value {
    named(&account["objects"], "flows")
}

fn sum(list: &Value, of: impl Fn(&Value) -> u64) -> u64 {
    list.as_array().unwrap().iter().map(of).sum()
}

#[test]
fn the_firewall_gives_the_same_bytes_on_every_number_of_workers_and_another_key_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let one = success(&mut firewall(&path("one.pcap"), &[]));
    let expected = std::fs::read(path("one.pcap")).unwrap();
    for cores in ["2", "4", "8"] {
        let out = path("some.pcap");
        let words = ["--cores", cores, "--steer", &symmetric()];
        let account = success(&mut firewall(&out, &words));
        assert!(std::fs::read(&out).unwrap() == expected, "{cores} workers");
        for same in [
            "read",
            "forwarded",
            "dropped",
            "reasons",
            "ports",
            "written",
        ] {
            assert_eq!(account[same], one[same], "{same}");
        }
        let workers = &account["workers"];
        assert_eq!(workers.as_array().unwrap().len().to_string(), cores);
        assert_eq!(
            sum(workers, |w| w["packets"].as_u64().unwrap()),
            one["read"]
        );
        let state = flows(&account);
        assert_eq!(state["entries"], flows(&one)["entries"]);
        assert_eq!(state["capacity"], flows(&one)["capacity"]);
        assert_eq!(
            sum(&state["by_worker"], |n| n.as_u64().unwrap()),
            state["entries"]
        );
        assert_eq!(account.get("relaxations"), None);
    }
    // The usual key, under which answers come to other workers than what they answer.
    let out = path("wrong.pcap");
    let account = success(&mut firewall(
        &out,
        &["--cores", "4", "--steer", "nic=generic"],
    ));
    assert!(std::fs::read(&out).unwrap() != expected);
    assert!(account["reasons"]["no_flow"].as_u64() > one["reasons"]["no_flow"].as_u64());
}

/// The plan, made when the run starts, with keys from a fresh secret.
#[test]
fn the_policer_runs_as_the_plan_says_and_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for (out, words) in [("one.pcap", &[][..]), ("six.pcap", &["--cores", "6"])] {
        let mut command = millrace();
        command
            .args(["run", "policer", "--in", "captures/talk.pcap"])
            .args(["--split", SPLIT, "--control", "none"])
            .args(["--set", "rate=20000", "--set", "burst=3000", "--out"])
            .arg(path(out))
            .args(words);
        let (output, text) = common::output(&mut command);
        assert!(output.status.success(), "{text}");
        if !words.is_empty() {
            assert!(text.contains("buckets: shard"), "{text}");
            assert!(text.contains("policer.c:"), "{text}");
        }
    }
    let bytes = |name| std::fs::read(path(name)).unwrap();
    assert!(bytes("one.pcap") == bytes("six.pcap"));
    let whole = std::fs::read(common::root().join("captures/talk.pcap")).unwrap();
    assert!(
        bytes("one.pcap").len() < whole.len(),
        "the policer drops some"
    );
}

#[test]
fn a_function_without_state_spreads() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for (out, words) in [("one.pcap", &[][..]), ("four.pcap", &["--cores", "4"])] {
        let mut command = millrace();
        command
            .args(["run", "nop", "--in", "captures/talk.pcap", "--out"])
            .arg(path(out))
            .args(words);
        success(&mut command);
    }
    let bytes = |name| std::fs::read(path(name)).unwrap();
    assert!(bytes("one.pcap") == bytes("four.pcap"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let contents = dir.path().join("flows.csv");
    std::fs::write(&contents, "zeros:40,zeros:1\n").unwrap();
    let map = format!("flows={}", contents.display());
    let key = symmetric();
    for (words, said) in [
        (&["--cores", "129", "--steer", &key][..], "128 entries"),
        (&["--cores", "2", "--steer", "DMZ:key=00"], "no port `DMZ`"),
        (
            &["--cores", "2", "--steer", "LAN:nic=generic"],
            "nothing is said of port `WAN`",
        ),
        (&["--cores", "2", "--steer", "key=00"], "40 bytes"),
        (&["--cores", "2", "--steer", "speed=9"], "speed"),
        (&["--steer", &key], "several cores"),
    ] {
        let text = refused(&mut firewall(&out, words), 2);
        assert!(text.contains(said), "{words:?}: {text}");
    }
    let words = ["--cores", "2", "--steer", &key, "--map", &map];
    let text = common::output(&mut firewall(&out, &words)).1;
    assert!(text.contains("flows"), "{text}");
    // The plan's answer is no, with the line.
    let mut gate = millrace();
    gate.args(["run", GATE, "--in", "captures/talk.pcap", "--cores", "2"])
        .args(["--strategy", "shard"]);
    let text = refused(&mut gate, 1);
    assert!(text.contains("cannot run as `shard`"), "{text}");
    let mut gate = millrace();
    gate.args(["run", "nop", "--in", "captures/talk.pcap", "--cores", "600"]);
    let text = refused(&mut gate, 2);
    assert!(text.contains("512 entries"), "{text}");
}

#[test]
fn the_state_of_all_workers_is_seen_while_they_run_and_kept_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("control.sock");
    let mut run = millrace();
    run.args(common::words(
        "run firewall --in mem:captures/talk.pcap --json",
    ))
    .args(["--split", SPLIT, "--seconds", "60", "--cores", "3"])
    .args(["--steer", &symmetric(), "--control"])
    .arg(&socket)
    .arg("--pin")
    .arg(dir.path().join("kept"))
    .arg("--pin-all")
    .stdout(Stdio::piped())
    .stderr(Stdio::null());
    let live = Live {
        child: run.spawn().unwrap(),
        socket,
    };
    let began = Instant::now();
    while std::os::unix::net::UnixStream::connect(&live.socket).is_err() {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let accounts = loop {
        let accounts = live.ask(&["ctl", "stats"])["accounts"].take();
        let all = accounts.as_array().unwrap();
        if all.iter().all(|a| a["read"].as_u64() > Some(1000)) {
            break accounts;
        }
        assert!(began.elapsed() < LONG, "{accounts}");
    };
    assert_eq!(accounts.as_array().unwrap().len(), 3);
    let shown = live.ask(&["map", "show", "flows"]);
    let parts = shown["by_worker"].as_array().unwrap();
    assert!(parts.iter().all(|n| n.as_u64() > Some(0)), "{shown}");
    assert_eq!(
        sum(&shown["by_worker"], |n| n.as_u64().unwrap()),
        shown["entries"]
    );
    assert_eq!(shown["capacity"], 65536);
    let exported = common::output(&mut live.command(&["map", "export", "flows"])).0;
    let entries: Value = serde_json::from_slice(&exported.stdout).unwrap();
    let keys: std::collections::BTreeSet<_> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["key"].to_string())
        .collect();
    // The trace is looped, so the flows are its 108 all the time, each with one owner.
    assert_eq!((keys.len(), entries.as_array().unwrap().len()), (108, 108));
    live.ask(&["ctl", "drain"]);
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    let kept = std::fs::read_to_string(dir.path().join("kept/flows.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(
        kept.as_array().unwrap().len() as u64,
        flows(&account)["entries"]
    );
}

#[test]
fn the_software_nic_is_told_whose_packets_are_whose() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.pcap");
    let mut packets = Vec::new();
    for n in 0..300_u16 {
        let client = ([10, 0, 0, (n % 200) as u8 + 1], 2000 + n);
        let server = ([198, 51, 100, (n % 7) as u8 + 1], 53);
        packets.push((u64::from(2 * n), udp(client, server)));
        packets.push((u64::from(2 * n + 1), udp(server, client)));
    }
    capture(&trace, &packets);
    let run = |options: &str, steer: &str| {
        let word = format!(
            "vnic:{}?measure=off&split=lan=10.0.0.0/8{options}",
            trace.display()
        );
        let mut command = millrace();
        command
            .args(["run", "firewall", "--ports", &word])
            .args(common::words(&format!(
                "--cores 2 --control none --steer {steer}"
            )));
        command
    };
    let account = success(&mut run("", &symmetric()));
    assert_eq!(
        (&account["read"], &account["forwarded"]),
        (&600.into(), &600.into())
    );
    let facts = account["facts"].to_string();
    assert!(facts.contains("RSS as told"), "{facts}");
    assert!(
        sum(&account["workers"], |w| u64::from(
            w["packets"].as_u64() > Some(100)
        )) == 2
    );
    // Under a wrong key answers miss their flows.
    let account = success(&mut run("", "nic=generic"));
    assert!(
        account["reasons"]["no_flow"].as_u64() > Some(50),
        "{account}"
    );
    // The device cannot be told and told otherwise.
    let text = refused(&mut run("&steer=spray", &symmetric()), 2);
    assert!(text.contains("leave them out"), "{text}");
}
