//! Packets of a running function, explained as they come.

use crate::common;

use std::path::Path;
use std::process::Stdio;

use common::live::Live;
use common::{SPLIT, json, output, refused};
use serde_json::Value;

/// These elements over the bundled trace, from memory, until they are told to stop.
fn serving(folder: &Path, elements: &[&str], words: &[&str]) -> Live {
    let trace = ["--in", "mem:captures/talk.pcap", "--split", SPLIT];
    let more = ["--out", "null:", "--seconds", "60"];
    let live = Live::of(folder, elements, &[&trace[..], &more, words].concat());
    live.until(|stats| stats["read"].as_u64() > Some(0));
    live
}

fn trace(live: &Live, words: &[&str]) -> Value {
    live.ask(&[&["ctl", "trace"], words].concat())
}

fn lines(packet: &Value) -> Vec<&str> {
    let lines = packet["lines"].as_array().unwrap();
    lines.iter().filter_map(Value::as_str).collect()
}

#[test]
fn packets_that_fit_are_told_with_the_state_that_they_met() {
    let dir = tempfile::tempdir().unwrap();
    let live = serving(dir.path(), &["firewall"], &[]);
    let told = trace(&live, &["--match", "tcp and in lan", "--count", "3"]);
    let packets = told["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 3, "{told}");
    for packet in packets {
        assert_eq!(packet["packet"]["port"], "LAN");
        assert_eq!(
            (&packet["agrees"], &packet["worker"]),
            (&true.into(), &0.into())
        );
        // The flows are there by now, or are put there by this packet.
        let steps = packet["steps"].as_array().unwrap();
        let looked = steps.iter().any(|s| s["access"]["object"] == "flows");
        assert!(
            looked && packet["verdict"] == "forwarded to WAN",
            "{packet}"
        );
        assert!(
            lines(packet).iter().any(|l| l.starts_with("firewall.c:")),
            "{packet}"
        );
    }
    let told = trace(&live, &["--match", "drop no_flow"]);
    let packet = &told["packets"][0];
    assert_eq!(packet["reason"], "no_flow", "{told}");
    assert!(packet["nearest"]["verdict"].is_string(), "{packet}");
    let absent = packet["steps"].as_array().unwrap();
    assert!(
        absent.iter().any(|s| s["access"]["outcome"] == "absent"),
        "{packet}"
    );
    refused(&mut live.command(&["ctl", "trace", "--match", "tcq"]), 2);
}

#[test]
fn a_trace_that_finds_nothing_ends_with_the_run_and_one_client_has_it_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let live = serving(dir.path(), &["firewall"], &[]);
    let mut waits = live.command(&["ctl", "trace", "--match", "host 203.0.113.9"]);
    let mut first = waits
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It has begun once another one is refused.
    let other = || output(&mut live.command(&["ctl", "trace", "--match", "tcp"]));
    while other().0.status.success() {
        crate::common::pause();
    }
    let said = refused(&mut live.command(&["ctl", "trace"]), 2);
    assert!(said.contains("another client traces"), "{said}");
    first.kill().unwrap();
    first.wait().unwrap();
    // What is killed leaves nothing behind.
    assert_eq!(
        trace(&live, &["--match", "udp"])["packets"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let waits = live.command(&["ctl", "trace", "--match", "host 203.0.113.9"]);
    let waits = std::thread::spawn(move || {
        let mut waits = waits;
        json(&mut waits)
    });
    while other().0.status.success() {
        crate::common::pause();
    }
    live.ask(&["ctl", "stop"]);
    let (told, status) = waits.join().unwrap();
    assert_eq!(
        (&told["ended"], status),
        (&"the run has ended".into(), 1),
        "{told}"
    );
}

#[test]
fn a_chain_is_told_element_by_element_until_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let live = serving(dir.path(), &["firewall", "nop"], &[]);
    let told = trace(&live, &["--match", "drop no_flow"]);
    let elements = told["packets"][0]["elements"].as_array().unwrap();
    let names: Vec<_> = elements
        .iter()
        .filter_map(|e| e["element"].as_str())
        .collect();
    // It came in at the chain's last port.
    assert_eq!(names, ["nop", "firewall"], "{told}");
    let told = trace(&live, &["--match", "in lan and forward and tcp"]);
    let elements = told["packets"][0]["elements"].as_array().unwrap();
    let names: Vec<_> = elements
        .iter()
        .filter_map(|e| e["element"].as_str())
        .collect();
    assert_eq!(names, ["firewall", "nop"], "{told}");

    let waits = live.command(&["ctl", "trace", "--match", "host 203.0.113.9"]);
    let waits = std::thread::spawn(move || {
        let mut waits = waits;
        json(&mut waits)
    });
    let other = || output(&mut live.command(&["ctl", "trace", "--match", "tcp"]));
    while other().0.status.success() {
        crate::common::pause();
    }
    live.ask(&["ctl", "chain", "detach", "nop"]);
    let (told, status) = waits.join().unwrap();
    assert_eq!(
        (&told["ended"], status),
        (&"the chain has changed".into(), 1),
        "{told}"
    );
    // The element that stays is told on.
    assert_eq!(
        trace(&live, &["--match", "tcp"])["packets"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn packets_of_several_workers_are_told() {
    for strategy in ["lock", "transact", "shard", "replicate"] {
        let dir = tempfile::tempdir().unwrap();
        let words = ["--cores", "2", "--strategy", strategy];
        let live = serving(dir.path(), &["firewall"], &words);
        let told = trace(&live, &["--match", "tcp", "--count", "4"]);
        let packets = told["packets"].as_array().unwrap();
        assert_eq!(packets.len(), 4, "{strategy}: {told}");
        for packet in packets {
            assert_eq!(packet["agrees"], true, "{strategy}: {packet}");
            assert!(packet["worker"].as_u64() < Some(2), "{strategy}: {packet}");
        }
    }
}
