//! Packet classes of guests on several cores, which `millrace ctl class move` moves from worker to worker in mid-stream.

use crate::common;
use crate::common::live;
use crate::common::stream;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{capture, millrace, read, refused};
use live::{Live, from};
use serde_json::Value;
use stream::{installed, receiver};

const CAPTURE: &str = "captures/talk.pcap";
const CLASSES: usize = 4;
const PACKETS: u32 = 9_000;
const SOURCES: u32 = 60;

/// One at a time: workers do not sleep on this kind of port, and its thread has to get a processor too.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Packets of many sources, each with its number.
fn numbered(path: &Path) {
    let packet = |number: u32| {
        let mut packet = from([10, 0, 0, (number % SOURCES) as u8]);
        packet[40..44].copy_from_slice(&number.to_be_bytes());
        (1_000_000_000 + u64::from(number), packet)
    };
    capture(path, &(0..PACKETS).map(packet).collect::<Vec<_>>());
}

/// What a guest has written, by source, in its order.
fn by_source(path: &Path) -> BTreeMap<u8, Vec<u32>> {
    let mut all: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
    for (_, _, bytes) in read(path) {
        let number = u32::from_be_bytes(bytes[40..44].try_into().unwrap());
        all.entry(bytes[29]).or_default().push(number);
    }
    all
}

/// Runs a function and a guest for each class on two workers, at a rate that they keep up with, and does something
/// meanwhile; the account.
fn run(folder: &Path, name: &str, input: &Path, meanwhile: impl Fn(&Live)) -> Value {
    let dump = folder.join(format!("{name}-{{class}}.pcap"));
    let out = folder.join(format!("{name}-out.pcap"));
    let guest = format!("guest:tcpdump -n -i @ -w {}", dump.display());
    // The rings take what comes while a worker does not get its processor.
    let input = format!("vnic:{}?rate=6k&depth=4096&measure=off", input.display());
    let classes = CLASSES.to_string();
    let words = format!(
        "--in {input} --out {} --cores 2 --classes {classes}",
        out.display()
    );
    let words = common::words(&words);
    let live = Live::of(folder, &["nop", &guest], &words);
    meanwhile(&live);
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    for queue in account["queues"].as_array().unwrap() {
        assert_eq!(queue["missed"], 0, "{account}");
    }
    for fate in ["read", "forwarded", "written"] {
        assert_eq!(account[fate], PACKETS, "{fate}: {account}");
    }
    let stages = account["stages"].as_array().unwrap();
    assert!(
        stages.iter().all(|s| s["packets"] == PACKETS),
        "each packet once through each element: {account}"
    );
    account
}

#[test]
fn a_class_moves_in_mid_stream_and_its_guest_with_it() {
    if !installed("tcpdump") {
        return;
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: String| dir.path().join(name);
    let input = file("in.pcap".into());
    numbered(&input);
    run(dir.path(), "still", &input, |_| ());
    let account = run(dir.path(), "moved", &input, |live| {
        let shown = live.ask(&["ctl", "class", "show"]);
        let workers = |shown: &Value| -> Vec<u64> {
            let all = shown["classes"].as_array().unwrap();
            all.iter().map(|c| c["worker"].as_u64().unwrap()).collect()
        };
        assert_eq!(workers(&shown), [0, 1, 0, 1], "{shown}");
        live.until(|stats| stats["read"].as_u64() > Some(100));
        let packets = |shown: &Value, class: usize| {
            shown["classes"][class]["guests"][0]["packets"]
                .as_u64()
                .unwrap()
        };
        let mut moves = 0;
        for round in 0..12_usize {
            let class = round % CLASSES;
            let (from, to) = (
                (class + round / CLASSES) % 2,
                (class + round / CLASSES + 1) % 2,
            );
            let (class, to) = (class.to_string(), to.to_string());
            let moved = live.ask(&["ctl", "class", "move", &class, &to]);
            assert_eq!(moved["from"], from, "{moved}");
            let held = moved["held_us"].as_f64().unwrap();
            assert!(held > 0.0 && held < 5e6, "{moved}");
            moves += 1;
        }
        let shown = live.ask(&["ctl", "class", "show"]);
        let total: u64 = (0..CLASSES).map(|class| packets(&shown, class)).sum();
        assert!(
            moves == 12 && total < u64::from(PACKETS),
            "the moves were not in the middle: {shown}"
        );
        assert_eq!(workers(&shown), [1, 0, 1, 0], "{shown}");
        // Where it is already.
        let moved = live.ask(&["ctl", "class", "move", "0", "1"]);
        assert_eq!((&moved["from"], &moved["to"]), (&1.into(), &1.into()));
        for (words, what) in [
            (["4", "0"], "there is no class 4"),
            (["0", "2"], "there is no worker 2"),
        ] {
            let mut command = live.command(&[&["ctl", "class", "move"], &words[..]].concat());
            let said = refused(&mut command, 2);
            assert!(said.contains(what), "{said}");
        }
        // Both workers change the chain, and guests of all classes stay where they are.
        let done = live.ask(&["ctl", "chain", "reorder", "tcpdump", "nop"]);
        assert_eq!(done["elements"][0], "tcpdump", "{done}");
    });
    let facts = account["facts"].to_string();
    assert!(
        facts.contains("class 0: ") && facts.contains("at last on worker 1"),
        "{facts}"
    );

    let mut whole = BTreeMap::new();
    for class in 0..CLASSES {
        let [still, moved] =
            ["still", "moved"].map(|name| by_source(&file(format!("{name}-{class}.pcap"))));
        assert!(!still.is_empty(), "class {class} has no packets");
        assert_eq!(still, moved, "class {class}");
        whole.extend(moved);
    }
    for (source, numbers) in &whole {
        let all = (0..PACKETS).filter(|n| n % SOURCES == u32::from(*source));
        assert_eq!(numbers, &all.collect::<Vec<_>>(), "source {source}");
    }
    assert_eq!(whole.len(), SOURCES as usize);
    // What went on is in order too, though two workers wrote it.
    assert_eq!(by_source(&file("moved-out.pcap".into())), whole);
}

/// Each class's guest fails at its 40th packet, on a thread of its own; packets go on, also where the class has moved.
#[test]
fn a_guest_that_fails_is_that_of_its_class_alone() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    numbered(&input);
    let port = format!("vnic:{}?rate=6k&depth=4096&measure=off", input.display());
    let program = receiver(dir.path());
    let [fails, counts] = ["null", "count"].map(|how| format!("guest:{} {how}", program.display()));
    let words = ["--in", &port, "--cores", "2", "--classes", "3"];
    let live = Live::of(dir.path(), &[&fails, &counts], &words);
    live.until(|stats| stats["read"].as_u64() > Some(100));
    for (class, to) in [(0, 1), (1, 0), (2, 1), (2, 0)] {
        let (class, to) = (class.to_string(), to.to_string());
        let moved = live.ask(&["ctl", "class", "move", &class, &to]);
        assert_eq!(moved["to"].to_string(), to, "{moved}");
    }
    let (account, status) = live.end();
    assert_eq!(status, 2, "{account}");
    assert_eq!(account["read"], PACKETS, "{account}");
    assert_eq!(account["forwarded"], PACKETS, "{account}");
    let errors = account["errors"].to_string();
    for class in 0..3 {
        assert!(errors.contains(&format!("class {class}: ")), "{errors}");
    }
    assert_eq!(errors.matches("a null pointer").count(), 3, "{errors}");
    // The guests behind them have seen all.
    let said = std::fs::read_to_string(dir.path().join("stderr")).unwrap();
    // A line of a guest begins with its element's name.
    let seen = said.lines().filter_map(|line| {
        let (before, _) = line.split_once(" packets, sum ")?;
        Some(before.rsplit_once(' ').map_or(before, |(_, count)| count))
    });
    let seen: u32 = seen.map(|count| count.parse::<u32>().unwrap()).sum();
    assert_eq!(seen, PACKETS, "{said}");
}

#[test]
fn classes_where_there_can_be_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (words, what) in [
        (
            &["nop", "nop", "--in", CAPTURE, "--classes", "2"][..],
            "--classes is for guests",
        ),
        (
            &[
                "guest:tcpdump -i @",
                "--in",
                "vnic:x",
                "--cores",
                "2",
                "--classes",
                "129",
            ],
            "no number of classes",
        ),
    ] {
        let said = refused(millrace().arg("run").args(words), 2);
        assert!(said.contains(what), "{words:?}: {said}");
    }
    let live = Live::of(dir.path(), &["nop", "nop"], &["--in", "-"]);
    let said = refused(&mut live.command(&["ctl", "class", "show"]), 2);
    assert!(said.contains("no packet classes"), "{said}");
}
