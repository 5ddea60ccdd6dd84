//! `millrace model --history`: the rows of the functions of the paper, and what is refused.

use crate::common;

use std::fmt::Write;

use common::{json, millrace, output, root, success};

/// Functions with the most bytes that their rows may have.
const PAPER: &[(&str, u64)] = &[
    ("ddos", 4),
    ("portknock", 6),
    ("heavyhitter", 15),
    ("tokenbucket", 18),
    ("conntrack", 30),
];

#[test]
fn rows_hold_what_state_depends_on() {
    let mut all = String::new();
    for name in PAPER
        .iter()
        .map(|(name, _)| *name)
        .chain(["bridge", "policer", "firewall", "nat"])
    {
        let nf = format!("nfs/{name}");
        let (shown, wrong) = output(millrace().args(["model", &nf, "--history"]));
        let status = shown.status.code();
        assert_eq!(status, Some(i32::from(name == "nat")), "{name}: {wrong}");
        let text = String::from_utf8_lossy(&shown.stdout);
        let folder = root().canonicalize().unwrap();
        let text = text.replace(&format!("{}/", folder.display()), "");
        let _ = writeln!(all, "{name}: {text}");
    }
    insta::assert_snapshot!(all);
    for (name, most) in PAPER {
        let head = all.lines().find(|l| l.starts_with(&format!("{name}: ")));
        let bytes = head
            .and_then(|l| l.split(", ").nth(1))
            .and_then(|l| l.split(' ').next());
        let bytes: u64 = bytes.unwrap().parse().unwrap();
        assert!(bytes <= *most, "{name}: {bytes} bytes");
    }
}

#[test]
fn the_document_has_it_beside_the_model() {
    let mut command = millrace();
    let document = success(command.args(["model", "nfs/portknock", "--history"]));
    assert_eq!(document["exhaustive"], true);
    let history = &document["history"];
    assert_eq!(history["bits"], 48);
    assert_eq!(history["bytes"], 6);
    assert_eq!(history["time_bits"], 0);
    assert_eq!(history["fields"][0]["name"], "packet[26..30]");
    assert_eq!(history["fields"][1]["at"], 32);
    assert_eq!(history["fields"][1]["line"]["line"], 69);
    assert_eq!(history["refusals"].as_array().unwrap().len(), 0);
}

/// On one core, as in front of replicas, all packets come in by one queue.
#[test]
fn the_receive_queue_is_no_replicas() {
    let mut command = millrace();
    let (document, status) = json(command.args(["model", "tests/programs/queues.c", "--history"]));
    assert_eq!(status, 1, "{document}");
    let refusals = document["history"]["refusals"].as_array().unwrap();
    let reason = refusals[0]["reason"].as_str().unwrap();
    assert!(reason.contains("receive queue"), "{refusals:?}");
}
