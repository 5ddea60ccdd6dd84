//! `millrace model`, the report for people: what it says of state, and in which words.

use crate::common;

use std::path::{Path, PathBuf};

use common::{json, millrace, output, root, success};
use serde_json::Value;

const RELATIONS: &str = "crates/cli/tests/relations/relations.c";

/// The function of relations/, with one thing changed, in a folder of its own.
fn changed(folder: &Path, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(root().join(RELATIONS)).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{from}");
    let file = folder.join("relations.c");
    std::fs::write(&file, text.replace(from, to)).unwrap();
    file
}

/// The sentences of one kind about one object.
fn sentences(source: &Path, kind: &str, object: &str) -> Vec<String> {
    let mut command = millrace();
    let document = success(command.arg("model").arg(source));
    assert_eq!(document["exhaustive"], true, "{}", document["bounded"]);
    let all = document["relations"].as_array().unwrap();
    let of = |r: &&Value| r["kind"] == kind && r["object"] == object;
    let found = all.iter().filter(of);
    found
        .map(|r| r["sentence"].as_str().unwrap().to_owned())
        .collect()
}

const SWAPPED: &str =
    "the WAN path's key is the LAN path's key with source and destination swapped";
const STORED: &str = "a WAN packet that looks up mappings changes or passes only if its source address \
    and port equal those stored by the LAN packet that opened the mapping; a mismatch behaves as a \
    miss (drop: unknown)";

#[test]
fn relations_are_said_where_they_hold() {
    let source = root().join(RELATIONS);
    assert_eq!(sentences(&source, "swapped", "flows"), [SWAPPED]);
    assert_eq!(sentences(&source, "stored", "mappings"), [STORED]);
    assert!(sentences(&source, "stored", "flows").is_empty());
}

#[test]
fn a_key_that_differs_in_one_field_is_not_the_other_one_swapped() {
    let folder = tempfile::tempdir().unwrap();
    let source = changed(
        folder.path(),
        "udp->dport, udp->sport };\n\tif",
        "udp->dport, udp->dport };\n\tif",
    );
    assert!(sentences(&source, "swapped", "flows").is_empty());
}

#[test]
fn a_mismatch_that_differs_from_a_miss_is_not_said_to_behave_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let mismatch = "DROP_BECAUSE(unknown); /* a mismatch */";
    // Another reason; forwarded all the same; dropped, but the entry is changed.
    for to in [
        "DROP_BECAUSE(forged);",
        "FORWARD(LAN);",
        "(peer->zero = 1, DROP_BECAUSE(unknown));",
    ] {
        let source = changed(folder.path(), mismatch, to);
        assert!(sentences(&source, "stored", "mappings").is_empty(), "{to}");
    }
}

#[test]
fn what_no_packet_stored_is_not_said_to_be_stored() {
    let folder = tempfile::tempdir().unwrap();
    // A packet of the same port stores it; what is stored is no field.
    for (from, to) in [
        (
            "if (p->port == LAN) {",
            "if (p->port == WAN || p->port == LAN) {",
        ),
        ("kept.address = ip->dst;", "kept.address = ip->dst + 1;"),
    ] {
        let source = changed(folder.path(), from, to);
        assert!(sentences(&source, "stored", "mappings").is_empty(), "{to}");
    }
}

/// What is said of keys that are swapped: pairs, and keys of which it is not said.
fn swapped_keys(source: &Path) -> (Vec<String>, Vec<String>) {
    let mut command = millrace();
    let document = success(command.arg("model").arg(source).args(["--time", "60"]));
    let all = document["relations"].as_array().unwrap();
    let swapped = all.iter().filter(|r| r["kind"] == "swapped");
    let details = swapped.flat_map(|r| r["details"].as_array().unwrap());
    let details = details.map(|d| d.as_str().unwrap().to_owned());
    details.partition(|d| !d.starts_with("not said of "))
}

#[test]
fn keys_behind_extension_headers_are_swapped_field_by_field() {
    let source = root().join("crates/cli/tests/relations/echo.c");
    let (said, not) = swapped_keys(&source);
    assert!(not.is_empty(), "{not:?}");
    assert!(
        said.iter()
            .all(|d| !d.contains("pkt[") && !d.contains("f(")),
        "{said:#?}"
    );
    for key in [
        "LAN ip6.src ++ ip6.dst ++ l4.sport ++ l4.dport ++ ip6.next ++ 6 ++ 0; \
         WAN ip6.dst ++ ip6.src ++ l4.dport ++ l4.sport ++ ip6.next ++ 6 ++ 0",
        "LAN ip6.src ++ ip6.dst ++ icmp6.id ++ 0 ++ ip6.next ++ 6 ++ 0; \
         WAN ip6.dst ++ ip6.src ++ icmp6.id ++ 0 ++ ip6.next ++ 6 ++ 0",
    ] {
        assert!(said.iter().any(|d| d == key), "{key}: {said:#?}");
    }
    // Where paths merged, too: both ports in one expression that is too long to read.
    assert!(
        said.iter()
            .any(|d| d.contains("l4.sport ++ l4.dport ++ ip6.protocol")),
        "{said:#?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(&source).unwrap();
    let reversed = "\tf.ports = PORTS_REVERSED(f.ports);\n";
    assert_eq!(text.matches(reversed).count(), 1);
    let file = folder.path().join("echo.c");
    std::fs::write(&file, text.replace(reversed, "")).unwrap();
    let (said, not) = swapped_keys(&file);
    assert!(said.iter().all(|d| !d.contains("port")), "{said:#?}");
    assert!(
        not.iter().any(|d| d.contains("l4.sport ++ l4.dport")),
        "{not:#?}"
    );
}

/// The time that the translation of addresses gets, in seconds: far more than it takes, so that nothing
/// depends on how fast the machine is.
const LONG: &str = "150";

/// What the report says of a bundled function before the first decision; none where it is not followed to
/// its last path in time.
fn state(nf: &str) -> Option<String> {
    let (out, _) = output(millrace().args(["model", nf, "--time", LONG]));
    assert_eq!(out.status.code(), Some(0));
    let text = String::from_utf8(out.stdout).unwrap();
    if !text.lines().next().unwrap().ends_with("all of them") {
        let why: Vec<&str> = text.lines().take(2).collect();
        eprintln!(
            "skipped: {nf} is not followed to its last path: {}",
            why.join(" ")
        );
        return None;
    }
    // Numbers of paths are the engine's business, not the reader's.
    let state = text.split_once("\nstate\n").unwrap().1;
    Some(state.split("\nmillrace_on_").next().unwrap().to_owned())
}

/// What was recorded was read against the source of each function.
#[test]
fn the_state_report_is_what_a_reader_would_write() {
    for nf in ["sbridge", "bridge", "policer"] {
        insta::assert_snapshot!(format!("state_{nf}"), state(nf).unwrap());
    }
    for nf in ["nat"] {
        if let Some(text) = state(nf) {
            insta::assert_snapshot!(format!("state_{nf}"), text);
        }
    }
}

#[test]
fn the_firewall_answers_what_the_lan_opened() {
    let (document, _) = json(millrace().args(["model", "firewall", "--time", "60"]));
    let all = document["relations"].as_array().unwrap();
    let said = |r: &Value| r["object"] == "flows" && r["sentence"] == SWAPPED;
    if document["exhaustive"] != true && !all.iter().any(said) {
        let why = &document["bounded"];
        eprintln!("skipped: firewall is not followed as far as its lookups: {why}");
        return;
    }
    assert!(all.iter().any(said), "{all:?}");
}

#[test]
fn the_translation_of_addresses_holds_answers_against_what_was_sent() {
    let (document, _) = json(millrace().args(["model", "nat", "--time", LONG]));
    if document["exhaustive"] != true {
        eprintln!(
            "skipped: nat is not followed to its last path: {}",
            document["bounded"]
        );
        return;
    }
    let all = document["relations"].as_array().unwrap();
    let said = "a WAN packet that looks up leases changes or passes only if its source address, port \
        and protocol equal those stored by the LAN packet that opened the mapping; a mismatch behaves \
        as a miss (drop: no_flow)";
    assert!(
        all.iter()
            .any(|r| r["object"] == "leases" && r["sentence"] == said),
        "{all:?}"
    );
}

#[test]
fn a_page_and_a_graph_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (page, graph) = (folder.path().join("r.html"), folder.path().join("r.dot"));
    let mut command = millrace();
    command.args(["model", "sbridge", "--html"]).arg(&page);
    let (out, text) = output(command.arg("--dot").arg(&graph));
    assert_eq!(out.status.code(), Some(0), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    // What hovering shows is the author's line.
    assert!(
        page.contains("title=\"sbridge.c:19: port = map_get(&amp;stations, &amp;dst);\""),
        "{page}"
    );
    assert_eq!(
        page.matches("<details").count(),
        page.matches("</details>").count()
    );
    let graph = std::fs::read_to_string(graph).unwrap();
    assert!(graph.starts_with("digraph \"sbridge\" {") && graph.ends_with("}\n"));
    assert!(graph.contains("map_get stations[eth.dst]"));

    let mut command = millrace();
    command.args(["model", "sbridge", "--html", "/nonexistent/x.html"]);
    let (out, text) = output(&mut command);
    assert_eq!(out.status.code(), Some(2));
    assert!(text.contains("/nonexistent/x.html"), "{text}");
}

/// Graphviz draws what is written.
#[test]
fn graphs_are_drawn() {
    let found = std::process::Command::new("dot").arg("-V").output();
    if found.is_err() {
        eprintln!("skipped: there is no dot (Debian: apt-get install graphviz)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for nf in ["nop", "sbridge", "bridge", "policer", "portknock"] {
        let graph = folder.path().join(format!("{nf}.dot"));
        let (out, text) = output(millrace().args(["model", nf, "--dot"]).arg(&graph));
        assert_eq!(out.status.code(), Some(0), "{text}");
        let drawn = std::process::Command::new("dot")
            .arg("-Tsvg")
            .arg(&graph)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&drawn.stderr);
        assert!(drawn.status.success() && said.is_empty(), "{nf}: {said}");
        let picture = String::from_utf8(drawn.stdout).unwrap();
        let written = std::fs::read_to_string(&graph).unwrap();
        let (edges, nodes) = ("class=\"edge\"", "class=\"node\"");
        assert_eq!(
            picture.matches(edges).count(),
            written.matches(" -> ").count(),
            "{nf}"
        );
        assert!(picture.matches(nodes).count() > 2, "{nf}");
    }
}
