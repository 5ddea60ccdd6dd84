//! Rules of classifiers: at start, replaced while packets run, kept over a restart, and files that are none.

use serde_json::Value;

use crate::common::live::{Live, whole};
use crate::common::stream::{Stream, numbers};
use crate::common::{json, millrace, output, refused, root, success};

/// Writes a file of rules; its path.
fn rules(folder: &std::path::Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn reason(stats: &Value, name: &str) -> u64 {
    stats["reasons"][name].as_u64().unwrap_or(0)
}

#[test]
fn rules_are_replaced_while_packets_run() {
    let dir = tempfile::tempdir().unwrap();
    let permit = rules(
        dir.path(),
        "permit",
        "src 10.1.0.0/16 class 1\nsrc 10.1.2.0/24 class 2\nsrc 10.0.0.0/8 class 1\n",
    );
    let deny = rules(dir.path(), "deny", "# all of it\nsrc 10.0.0.0/8 class 2\n");
    let wrong = rules(dir.path(), "wrong", "src 10.0.0.0/8\ndport 9-8\n");
    let out = dir.path().join("out.pcap");
    let words = [
        "--map",
        &format!("acl={permit}"),
        "--in",
        "-",
        "--out",
        out.to_str().unwrap(),
    ];
    let mut live = Live::of(dir.path(), &["acl"], &words);
    let stream = Stream::of(&mut live, whole);
    live.until(|s| s["read"].as_u64() > Some(100));

    let shown = live.ask(&["map", "show", "acl"]);
    let found = &shown["rules"];
    assert_eq!(
        (&found["rules"], &found["classes"]),
        (&3.into(), &3.into()),
        "{shown}"
    );
    assert_eq!(found["form"], "diagram");
    let redundant = serde_json::json!([
        { "line": 1, "why": "repeated", "by": 3 },
        { "line": 2, "why": "shadowed", "by": 1 },
    ]);
    assert_eq!(found["redundant"], redundant, "{shown}");

    // A file with a line that is none changes nothing.
    let said = refused(&mut live.command(&["map", "import", "acl", &wrong]), 2);
    assert!(
        said.contains("line 2: `dport` from 9 to 8 is empty"),
        "{said}"
    );
    let said = refused(&mut live.command(&["map", "set", "acl", "1", "2"]), 2);
    assert!(said.contains("takes rules"), "{said}");
    let before = live.stats();
    stream.more(100);
    let still = live.until(|s| s["read"].as_u64() > before["read"].as_u64().map(|n| n + 50));
    assert_eq!(
        reason(&still, "denied") + reason(&still, "no_rule"),
        0,
        "{still}"
    );

    assert_eq!(live.ask(&["map", "import", "acl", &deny])["set"], 1);
    live.until(|s| reason(s, "denied") > 100);
    live.ask(&["map", "clear", "acl"]);
    let stats = live.until(|s| reason(s, "no_rule") > 100);
    assert!(reason(&stats, "denied") > 0);
    let sent = stream.end();
    let (document, status) = live.end();
    assert_eq!(status, 0, "{document}");
    // One moment: every packet before it passed, and none behind it.
    let passed = numbers(&out);
    assert!(passed.iter().copied().eq(0..passed.len() as u32), "gaps");
    let dropped = reason(&document, "denied") + reason(&document, "no_rule");
    assert_eq!(passed.len() as u64 + dropped, u64::from(sent), "{document}");
}

#[test]
fn a_large_list_comes_in_parts_and_goes_to_all_workers() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list");
    let list = list.to_str().unwrap();
    let made = success(millrace().args(["trace", "acl", "--rules", "8550", "-o", list]));
    assert!(
        made["bytes"].as_u64() > Some(300_000),
        "more than one request: {made}"
    );
    let packets = dir.path().join("t.pcap");
    let packets = packets.to_str().unwrap();
    let (made, status) = json(millrace().args(crate::common::words(&format!(
        "trace gen --match {list} --packets 20000 -o {packets}"
    ))));
    assert_eq!(
        (status, &made["classes"]),
        (0, &serde_json::json!([0, 1, 2])),
        "{made}"
    );

    let input = format!("mem:{packets}");
    let words = format!("--in {input} --out null: --cores 2 --seconds 60");
    let words = crate::common::words(&words);
    let live = Live::of(dir.path(), &["acl"], &words);
    let of = |stats: &Value, name: &str| -> Vec<u64> {
        stats["accounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|a| reason(a, name))
            .collect()
    };
    let until = |enough: &dyn Fn(&Value) -> bool| {
        let began = std::time::Instant::now();
        loop {
            let stats = live.ask(&["ctl", "stats"]);
            if enough(&stats) {
                return;
            }
            assert!(began.elapsed().as_secs() < 60, "{stats}");
            crate::common::pause();
        }
    };
    until(&|s| of(s, "no_rule").iter().sum::<u64>() > 1000);
    assert_eq!(live.ask(&["map", "import", "acl", list])["set"], 8550);
    // Both workers have them.
    until(&|s| of(s, "denied").len() == 2 && of(s, "denied").iter().all(|n| *n > 100));
}

#[test]
fn verify_finds_workers_equal_and_the_plan_spreads() {
    let dir = tempfile::tempdir().unwrap();
    let list = rules(
        dir.path(),
        "list",
        "dport 80 class 1\nprotocol 17 dport 1-1000 class 2\nprotocol 6 class 1\n",
    );
    let plan = success(millrace().args(["plan", "acl", "--cores", "16"]));
    assert_eq!(plan["objects"][0]["treatment"], "spread", "{plan}");
    let capture = root().join("captures");
    let capture = std::fs::read_dir(capture)
        .unwrap()
        .flatten()
        .map(|e| e.path());
    let capture = capture
        .filter(|p| p.extension().is_some_and(|e| e == "pcap"))
        .min()
        .unwrap();
    let verdict = success(millrace().args([
        "verify",
        "acl",
        "--map",
        &format!("acl={list}"),
        "--cores",
        "4",
        "--in",
        capture.to_str().unwrap(),
    ]));
    assert_eq!(verdict["equal"], true, "{verdict}");
}

#[test]
fn files_that_are_no_rules_are_refused_with_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let packets = root().join("captures");
    for (text, what) in [
        (
            "src 10.0.0.0/40\n",
            "line 1: `src`: a prefix of `40` bits; write a length from 0 to 32",
        ),
        (
            "class 3\n",
            "line 1: class `3`; classes are 0 to 2; raise .classes of the CLASSIFIER for more",
        ),
        ("\n\nvlan 5\n", "line 3: the key has no field `vlan`"),
    ] {
        let file = rules(dir.path(), "bad", text);
        let mut command = millrace();
        command
            .args(["run", "acl", "--map", &format!("acl={file}"), "--in"])
            .arg(packets.join("none.pcap"));
        command.args(["--out", "null:"]);
        let said = refused(&mut command, 2);
        assert!(said.contains(what), "{said}");
    }
    let mut folder = millrace();
    folder.args([
        "run",
        "acl",
        "--map",
        &format!("acl={}", dir.path().display()),
        "--in",
        "none.pcap",
        "--out",
        "null:",
    ]);
    assert!(refused(&mut folder, 2).contains("directory"));
}

#[test]
fn a_small_list_gives_packets_for_its_rules() {
    let dir = tempfile::tempdir().unwrap();
    let list = rules(
        dir.path(),
        "list",
        "src 10.0.0.1 dport 80 protocol 6 class 2\n",
    );
    let made = dir.path().join("t.pcap");
    let mut command = millrace();
    command.args(crate::common::words(&format!(
        "trace gen --match {list} --packets 10 -o {}",
        made.display()
    )));
    let (said, errors) = output(&mut command);
    let text = format!("{}{errors}", String::from_utf8_lossy(&said.stdout));
    assert!(text.contains("1 of 1 rules are met, 2 classes"), "{text}");
    // The two describe traffic each.
    let mut command = millrace();
    command.args(["trace", "gen", "--match", &list, "--flows", "3"]);
    let (said, errors) = output(command.args(["-o", "x.pcap"]));
    assert_eq!(said.status.code(), Some(2));
    assert!(
        errors.contains("'--match <FILE>' cannot be used with '--flows <N>'"),
        "{errors}"
    );
}
