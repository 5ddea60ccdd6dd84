//! Pinned maps: what a run leaves is there for the next, whatever happens in between.

use crate::common;
use crate::common::live;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{capture, json, millrace, refused, root, success};
use live::{Live, from};
use serde_json::Value;

/// A run over one packet from each of these sources, with its maps kept in `pins`.
fn run(folder: &Path, sources: impl IntoIterator<Item = [u8; 4]>, words: &[&str]) -> Command {
    let input = folder.join("in.pcap");
    let packets = sources.into_iter().enumerate();
    let packets: Vec<_> = packets.map(|(i, s)| (1000 + i as u64, from(s))).collect();
    capture(&input, &packets);
    let mut command = millrace();
    command
        .arg("run")
        .arg(root().join("tests/programs/blocklist.c"));
    command.arg("--in").arg(&input).args(["--control", "none"]);
    command.arg("--pin").arg(folder.join("pins")).args(words);
    command
}

fn entries(folder: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("pins").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_is_pinned_is_there_in_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let two = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let list = dir.path().join("list.csv");
    std::fs::write(&list, "10.0.0.2/32,u32:1 zeros:4\n").unwrap();
    let map = format!("blocked={}", list.display());
    let (first, status) = json(&mut run(dir.path(), two, &["--map", &map]));
    assert_eq!((status, first["dropped"].as_u64()), (0, Some(1)), "{first}");
    // The list of addresses was given once; it is there still, and the counts go on.
    for n in 2..=3 {
        let (next, status) = json(&mut run(dir.path(), two, &[]));
        assert_eq!((status, next["dropped"].as_u64()), (0, Some(1)), "{next}");
        let counts = entries(dir.path(), "sources.json");
        assert_eq!(counts.len(), 2);
        assert!(counts.iter().all(|e| e["value"] == n), "{counts:?}");
    }
    assert_eq!(entries(dir.path(), "blocked.json").len(), 1);
    // Only what is declared pinned; all with --pin-all.
    assert!(!dir.path().join("pins/seen.json").exists());
    json(&mut run(dir.path(), two, &["--pin-all"]));
    assert_eq!(entries(dir.path(), "seen.json").len(), 2);

    // A file that does not fit is named, before a packet is read.
    std::fs::write(
        dir.path().join("pins/blocked.json"),
        "[{\"key\": \"10.0.0.1\", \"value\": 2}]",
    )
    .unwrap();
    let text = refused(&mut run(dir.path(), two, &[]), 2);
    assert!(text.contains("blocked.json: entry 1: key: "), "{text}");
    std::fs::remove_file(dir.path().join("pins/blocked.json")).unwrap();
    let none = refused(
        millrace()
            .args(common::words(
                "run nop --in captures/talk.pcap --control none --pin",
            ))
            .arg(dir.path().join("x")),
        2,
    );
    assert!(none.contains("no map is declared pinned by name"), "{none}");
}

#[test]
fn one_run_at_a_time_has_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let pins = dir.path().join("pins");
    let live = Live::looping(dir.path(), &["--pin", pins.to_str().unwrap()]);
    let text = refused(&mut run(dir.path(), [[1, 2, 3, 4]], &[]), 2);
    assert!(text.contains("another run keeps its maps there"), "{text}");
    live.ask(&["map", "set", "blocked", "192.0.2.0/24", "zeros:8"]);
    live.ask(&["ctl", "stop"]);
    assert_eq!(live.end().1, 0);
    assert_eq!(entries(dir.path(), "blocked.json").len(), 1);
}

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_whole_files() {
    let dir = tempfile::tempdir().unwrap();
    let sources = || (0..200_u8).map(|i| [10, 0, 1, i]);
    // The module is built, and there is something to lose.
    success(&mut run(dir.path(), sources(), &[]));
    let value = || {
        let counts = entries(dir.path(), "sources.json");
        assert_eq!(counts.len(), 200);
        let first = counts[0]["value"].as_u64().unwrap();
        // All of one run: a mixture of two would be a part of each.
        assert!(counts.iter().all(|e| e["value"] == first), "{counts:?}");
        first
    };
    let (mut last, mut completed, mut killed) = (value(), 0, 0);
    let whole = {
        let began = std::time::Instant::now();
        json(&mut run(dir.path(), sources(), &[]));
        last += 1;
        began.elapsed()
    };
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..60_u64 {
        seed = seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(round | 1);
        let mut command = run(dir.path(), sources(), &[]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From the first instruction to past the end of a usual run.
        std::thread::sleep(whole.mul_f64((seed >> 40) as f64 / (1_u64 << 24) as f64 * 1.1));
        let _ = child.kill();
        let ended = child.wait().unwrap();
        let now = value();
        assert!(now == last || now == last + 1, "{last}, then {now}");
        if ended.success() {
            assert_eq!(now, last + 1);
            completed += 1;
        } else {
            killed += 1;
        }
        last = now;
    }
    assert!(killed > 5, "{killed} killed, {completed} completed");
    // What a killed run has left beside is in nobody's way.
    std::thread::sleep(Duration::from_millis(1));
    let (_, status) = json(&mut run(dir.path(), sources(), &[]));
    assert_eq!((status, value()), (0, last + 1));
    assert!(!dir.path().join("pins/sources.json.new").exists());
}
