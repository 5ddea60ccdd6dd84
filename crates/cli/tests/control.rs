//! A running function is looked at, changed and ended from outside, while packets flow.

use crate::common;
use crate::common::live;

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Instant;

use common::{capture, json, millrace, output, refused, root};
use live::{LONG, Live, Raw, from, header, record};
use serde_json::{Value, json};

#[test]
fn an_entry_set_while_packets_come_through_a_pipe_decides_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.pcap");
    let mut live = Live::start(dir.path(), &["--in", "-", "--out", out.to_str().unwrap()]);
    let mut pipe = live.child.stdin.take().unwrap();
    // Before the first packet there is no state, and that is said.
    let early = refused(
        &mut live.command(&["map", "set", "blocked", "10.0.0.0/8", "0"]),
        2,
    );
    assert!(
        early.contains("is there") || early.contains("no packet has come"),
        "{early}"
    );

    pipe.write_all(&header()).unwrap();
    let mut send = |ns: u32, source: [u8; 4]| {
        pipe.write_all(&record(ns, &from(source))).unwrap();
        pipe.flush().unwrap();
    };
    // One packet is no burst; it goes through all the same, and into the file.
    send(1, [10, 0, 0, 1]);
    live.until(|s| s["forwarded"] == 1);
    let began = Instant::now();
    while std::fs::metadata(&out).unwrap().len() < 24 + 16 + 60 {
        assert!(began.elapsed() < LONG);
        common::pause();
    }

    let rule = r#"{"number": 7, "port": 80}"#;
    let done = live.ask(&["map", "set", "blocked", "10.0.0.0/24", rule]);
    assert_eq!(done, json!({"set": 1, "deleted": 0}));
    let got = live.ask(&["map", "get", "blocked", "10.0.0.0/24"]);
    assert_eq!(got["value"], json!({"number": 7, "port": 80, "zero": 0}));
    send(2, [10, 0, 0, 1]);
    let stats = live.until(|s| s["read"] == 2);
    assert_eq!(
        (&stats["forwarded"], &stats["dropped"]),
        (&json!(1), &json!(1))
    );
    send(3, [10, 0, 1, 1]);
    live.until(|s| s["forwarded"] == 2);

    assert_eq!(
        live.ask(&["map", "delete", "blocked", "10.0.0.0/24"])["deleted"],
        1
    );
    let (none, status) = json(&mut live.command(&["map", "delete", "blocked", "10.0.0.0/24"]));
    assert_eq!((&none["deleted"], status), (&json!(0), 1));
    let missing = refused_with_one(&live, &["map", "get", "blocked", "10.0.0.0/24"]);
    assert!(missing.contains("there is no such entry"), "{missing}");
    send(4, [10, 0, 0, 1]);
    live.until(|s| s["forwarded"] == 3);

    // By type: what the program counted, each worker's own and all.
    let counted = live.ask(&["map", "get", "seen", "0"]);
    assert_eq!(counted, json!({"key": 0, "value": 3, "values": [3]}));
    assert_eq!(live.ask(&["map", "get", "sources", "10.0.0.1"])["value"], 3);
    assert_eq!(live.ask(&["ctl", "drain"])["state"], "draining");
    let (account, status) = live.end();
    assert_eq!(
        (status, &account["read"], &account["interrupted"]),
        (0, &json!(4), &json!(false))
    );
    let times: Vec<_> = common::read(&out)
        .into_iter()
        .map(|(_, t, _)| t % 1000)
        .collect();
    assert_eq!(times, [1, 3, 4]);
}

/// Exit status 1; there may be nothing to do about it.
fn refused_with_one(live: &Live, words: &[&str]) -> String {
    let (output, text) = output(&mut live.command(words));
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

#[test]
fn edits_of_one_request_lie_between_two_packets_together() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let aborted = |live: &Live| live.stats()["aborted"].as_u64().unwrap();
    let mut client = Raw::connect(&live.socket);
    let set = |object: &str, n: u32| json!({"object": object, "op": "set", "key": 0, "value": n});
    for n in 1..=300 {
        // In two parts, which are one edit.
        let first = client.ask(json!({"do": "edit", "edits": [set("left", n)], "more": true}));
        assert_eq!(first["ok"]["staged"], 1, "{first}");
        let all = client.ask(json!({"do": "edit", "edits": [set("right", n)]}));
        assert_eq!(all["ok"]["set"], 2, "{all}");
    }
    assert_eq!(live.ask(&["map", "get", "left", "0"])["value"], 300);
    assert_eq!(aborted(&live), 0);
    // One alone is seen at once: the test can fail.
    client.ask(json!({"do": "edit", "edits": [set("left", 0)]}));
    live.until(|s| s["aborted"].as_u64() > Some(0));
    client.ask(json!({"do": "edit", "edits": [set("right", 0)]}));
    let before = aborted(&live);

    // All or none: the second does not fit the array, so the first is not made either.
    let bad = json!({"object": "right", "op": "set", "key": 5, "value": 1});
    let refused = client.ask(json!({"do": "edit", "edits": [set("left", 9), bad]}));
    assert_eq!(refused["error"]["code"], "refused", "{refused}");
    assert_eq!(live.ask(&["map", "get", "left", "0"])["value"], 0);
    assert_eq!(aborted(&live), before);
    let end = live.ask(&["ctl", "stop"]);
    assert_eq!(end["state"], "stopping");
    let (account, status) = live.end();
    let sum = |names: &[&str]| {
        names
            .iter()
            .map(|n| account[*n].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((status, &account["interrupted"]), (0, &json!(true)));
    assert_eq!(
        sum(&["read"]),
        sum(&["forwarded", "dropped", "passed", "consumed", "aborted"])
    );
}

#[test]
fn maps_are_listed_exported_and_imported() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    let list = live.ask(&["map", "list"]);
    let objects = list["objects"].as_array().unwrap().iter();
    let mut names: Vec<_> = objects.map(|o| o["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["blocked", "left", "right", "seen", "sources"]);
    let shown = live.ask(&["map", "show", "blocked"]);
    assert_eq!(
        shown["value"],
        json!({"number": "u32", "port": "be16", "zero": "u16"})
    );
    assert_eq!(
        (&shown["pinned"], &shown["settable"]),
        (&json!(true), &json!(true))
    );

    let entries = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let csv = entries(
        "a.csv",
        "192.0.2.0/24,u32:1 be16:80 zeros:2\n2.0.0.0/8,u32:2 zeros:4\n",
    );
    assert_eq!(live.ask(&["map", "import", "blocked", &csv])["set"], 2);
    let export = |words: &[&str]| {
        let (output, text) = output(&mut live.command(&[&["map", "export"], words].concat()));
        assert!(output.status.success(), "{text}");
        String::from_utf8(output.stdout).unwrap()
    };
    let mut lines: Vec<_> = export(&["blocked", "--csv"])
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "192.0.2.0/24,u32:1 be16:80 u16:0",
            "2.0.0.0/8,u32:2 be16:0 u16:0"
        ]
    );

    // What is exported is imported, as JSON, and the map is replaced at one moment.
    let saved = export(&["blocked"]);
    let document: Vec<Value> = serde_json::from_str(&saved).unwrap();
    assert_eq!(document.len(), 2);
    let saved = entries("a.json", &saved);
    let done = live.ask(&["map", "import", "blocked", &saved, "--replace"]);
    assert_eq!(done, json!({"set": 2, "deleted": 2}));
    assert_eq!(live.ask(&["map", "clear", "blocked"])["deleted"], 2);
    assert_eq!(export(&["blocked"]), "[\n]\n");
    // An array's elements stay, and become zero.
    assert!(live.ask(&["map", "get", "seen", "0"])["value"].as_u64() > Some(0));

    // More than fits: nothing of it is there.
    let many: String = (0..100)
        .map(|i| format!("1.0.{i}.0/24,u32:1 zeros:4\n"))
        .collect();
    let many = entries("many.csv", &many);
    let full = refused(&mut live.command(&["map", "import", "blocked", &many]), 1);
    assert!(full.contains("it holds 64 entries and no more"), "{full}");
    assert_eq!(live.ask(&["map", "show", "blocked"])["entries"], 0);
    // More than one page, and more than one request.
    let many: String = (0..256).map(|i| format!("1.0.{i}.0,{i}\n")).collect();
    let many = entries("sources.csv", &many);
    live.ask(&["map", "import", "sources", &many]);
    assert!(export(&["sources", "--csv"]).lines().count() >= 255);
    let unknown = refused(&mut live.command(&["ctl", "set", "grease=1"]), 2);
    assert!(unknown.contains("the parameters are grace"), "{unknown}");
}

#[test]
fn a_parameter_set_while_running_decides_the_packets_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &["--set", "grace=0"]);
    live.ask(&["map", "set", "blocked", "10.0.0.1/32", "zeros:8"]);
    live.until(|s| s["dropped"].as_u64() > Some(0));
    assert_eq!(live.stats()["passed"], 0);
    let done = live.ask(&["ctl", "set", "grace=0x10"]);
    assert_eq!(done, json!({"name": "grace", "before": "0", "now": "16"}));
    let params = live.ask(&["ctl", "params"]);
    assert_eq!(params["params"][0]["value"], "16");
    let first = live.until(|s| s["passed"].as_u64() > Some(0));
    let later = live.until(|s| s["passed"].as_u64() > first["passed"].as_u64());
    assert_eq!(first["dropped"], later["dropped"]);
    for wrong in ["grace=-1", "grace=4294967296", "grace=x", "grace"] {
        refused(&mut live.command(&["ctl", "set", wrong]), 2);
    }
    assert_eq!(live.ask(&["ctl", "params"])["params"][0]["value"], "16");
}

#[test]
fn what_cannot_be_done_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::looping(dir.path(), &[]);
    for (words, what) in [
        (["map", "get", "bloked", "1"], "there is no such object"),
        (["map", "get", "blocked", "10.0.0.0/33"], "key: "),
        (["map", "get", "blocked", r#"{"len": 3}"#], "no field `len`"),
        (["map", "import", "blocked", "/nonexistent"], "No such file"),
    ] {
        let text = refused(&mut live.command(&words), 2);
        assert!(text.contains(what), "{words:?}: {text}");
    }
    let dead = dir.path().join("none.sock");
    let mut command = millrace();
    command.args(["map", "list", "--control"]).arg(&dead);
    refused(&mut command, 2);
}

#[test]
fn a_run_is_found_by_its_name() {
    let runtime = tempfile::tempdir().unwrap();
    let here = |words: &[&str]| {
        let mut command = millrace();
        command.env("XDG_RUNTIME_DIR", runtime.path()).args(words);
        command
    };
    let capture_path = runtime.path().join("a.pcap");
    capture(&capture_path, &[(1, from([1, 2, 3, 4]))]);
    let input = format!("mem:{}", capture_path.display());
    let program = root().join("tests/programs/blocklist.c");
    let start = |more: &[&str]| {
        let mut command = here(&["run"]);
        command
            .arg(&program)
            .args(["--in", &input, "--seconds", "60"])
            .args(more);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let runs = || {
        json(&mut here(&["ctl", "runs"])).0["runs"]
            .as_array()
            .unwrap()
            .len()
    };
    let until = |wanted: usize| {
        let began = Instant::now();
        while runs() != wanted {
            assert!(began.elapsed() < LONG, "{} runs", runs());
            common::pause();
        }
    };
    let nothing = refused(&mut here(&["map", "list"]), 2);
    assert!(nothing.contains("nothing runs"), "{nothing}");
    let mut first = start(&[]);
    until(1);
    assert!(output(&mut here(&["map", "list"])).0.status.success());
    let mut second = start(&["--name", "edge"]);
    until(2);
    let which = refused(&mut here(&["ctl", "stats"]), 2);
    assert!(
        which.contains("2 runs could be meant") && which.contains("edge"),
        "{which}"
    );
    assert!(
        output(&mut here(&["ctl", "stats", "--run", "blocklist"]))
            .0
            .status
            .success()
    );

    // A name that a live run has is refused; one that a dead run has left is not.
    let mut third = start(&["--name", "edge"]);
    assert_eq!(third.wait().unwrap().code(), Some(2));
    let mut said = String::new();
    third
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(said.contains("a running process listens there"), "{said}");
    second.kill().unwrap();
    second.wait().unwrap();
    until(1);
    let mut fourth = start(&["--name", "edge"]);
    until(2);
    for (name, child) in [("edge", &mut fourth), ("blocklist", &mut first)] {
        assert!(
            output(&mut here(&["ctl", "stop", "--run", name]))
                .0
                .status
                .success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(
        std::fs::read_dir(runtime.path().join("millrace"))
            .unwrap()
            .count(),
        0
    );
}
