//! `millrace explain` from outside: a function, a chain, a capture with comments, wrong use.

use crate::common;

use std::process::Command;

use common::{json, millrace, success};
use serde_json::Value;

fn talk(nf: &[&str], words: &[&str]) -> Command {
    let mut command = millrace();
    command
        .arg("explain")
        .args(nf)
        .args(common::words(
            "--in captures/talk.pcap --split lan=10.0.0.0/24,fd00::/8",
        ))
        .args(words);
    command
}

#[test]
fn a_drop_is_explained_and_written_with_comments() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("one.pcapng");
    let words = [
        "--where",
        "drop no_flow",
        "--pcapng",
        capture.to_str().unwrap(),
    ];
    let found = success(&mut talk(&["firewall"], &words));
    assert_eq!(found["agrees"], true, "{found}");
    assert_eq!(found["reason"], "no_flow");
    let steps = found["steps"].as_array().unwrap();
    let lines: Vec<&Value> = steps.iter().filter(|s| s["file"] == "firewall.c").collect();
    assert!(!lines.is_empty());
    let lookup = steps
        .iter()
        .find(|s| s["access"]["object"] == "flows")
        .unwrap();
    assert_eq!(lookup["access"]["found"], false);
    let nearest = found["nearest"]["differs"][0]["condition"]
        .as_str()
        .unwrap();
    assert!(
        nearest.starts_with("flows[") && nearest.ends_with("] there"),
        "{nearest}"
    );
    // The same number again gives the same.
    let number = found["packet"]["number"].to_string();
    let (again, _) = json(&mut talk(&["firewall"], &["--packet", &number]));
    assert_eq!(again, found);
    let bytes = std::fs::read(&capture).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("map_refresh flows[") && text.contains("dropped: no_flow"));
    let (info, _) = json(millrace().args(["trace", "info"]).arg(&capture));
    assert_eq!(info["packets"], 1);
}

#[test]
fn a_chain_is_explained_element_by_element() {
    let found = success(&mut talk(
        &["policer", "firewall"],
        &["--where", "forward WAN and ip"],
    ));
    assert_eq!(found["agrees"], true, "{found}");
    let elements: Vec<&str> = (found["elements"].as_array().unwrap().iter())
        .map(|e| e["element"].as_str().unwrap())
        .collect();
    assert_eq!(elements, ["policer", "firewall"]);
    // From outside it meets them the other way.
    let (found, _) = json(&mut talk(
        &["policer", "firewall"],
        &["--where", "drop no_flow"],
    ));
    assert_eq!(found["elements"][0]["element"], "firewall");
    assert_eq!(found["elements"].as_array().unwrap().len(), 1);
}

#[test]
fn wrong_use_says_what_to_do() {
    for (words, status, says) in [
        (
            &["--packet", "5000"][..],
            1,
            "there is no packet 5000: the trace has 1619",
        ),
        (
            &["--where", "drop table_full"],
            1,
            "none of the 1619 packets fits",
        ),
        (
            &["--where", "drop no_flow", "--nth", "1000"],
            1,
            "number 1000 of them was asked for",
        ),
        (&["--where", "teh"], 2, "`teh` is no word of a filter"),
        (&["--where", "host 10.0.0"], 2, "`10.0.0` is no address"),
    ] {
        let output = talk(&["firewall"], words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(
            said.contains(says) && said.contains("help"),
            "{words:?}: {said}"
        );
    }
}
