//! State that workers share under the lock, and numbers to which each adds by itself: `run` and `verify`.

use crate::common;
use millrace_turns::of_today;

use std::path::Path;
use std::process::Command;

use common::{SPLIT, json, named, optimised as millrace, output, refused, success};
use serde_json::Value;

/// A run over the bundled trace.
fn run(nf: &str, words: &[&str]) -> Command {
    let mut command = millrace();
    command
        .args(["run", nf, "--in", "captures/talk.pcap", "--split", SPLIT])
        .args(["--control", "none"])
        .args(words);
    command
}

/// What is pinned in a folder, sorted by its text.
fn pinned(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let entries: Value = serde_json::from_str(&text).unwrap();
    let mut all: Vec<_> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    all.sort();
    all
}

#[test]
fn a_bridge_has_one_table_on_every_number_of_workers() {
    let dir = tempfile::tempdir().unwrap();
    let mut ends = Vec::new();
    for cores in ["1", "2", "4", "8"] {
        let pins = dir.path().join(format!("pins{cores}"));
        let mut command = run("bridge", &["--cores", cores, "--pin-all", "--pin"]);
        let account = success(command.arg(&pins));
        assert_eq!(account["read"], 1619);
        let stations = named(&account["objects"], "stations");
        assert_eq!(stations.get("by_worker"), None);
        let kept = pinned(&pins, "stations");
        assert_eq!(stations["entries"], kept.len() as u64);
        // Where each was heard last depends on who came last; who was heard does not.
        let entries: Value = serde_json::from_str(&format!("[{}]", kept.join(","))).unwrap();
        let keys = entries
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["key"].to_string());
        ends.push((stations["bytes"].clone(), keys.collect::<Vec<_>>()));
    }
    assert!(ends[0].1.len() > 1, "{ends:?}");
    assert!(ends.iter().all(|e| *e == ends[0]), "{ends:?}");
    let (_, said) = output(&mut run("bridge", &["--cores", "2"]));
    assert!(
        said.contains("one for 2 workers, under a lock: stations"),
        "{said}"
    );
    assert!(
        said.contains("bridge.c:") && said.contains("MAC address"),
        "{said}"
    );
}

#[test]
fn what_is_there_at_start_is_there_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let (contents, pins) = (dir.path().join("stations.csv"), dir.path().join("pins"));
    std::fs::write(&contents, "02:aa:00:00:00:01,u32:1\n").unwrap();
    let map = format!("stations={}", contents.display());
    let words = format!("--cores 3 --map {map} --packets 10 --pin-all --pin");
    let words = common::words(&words);
    success(run("bridge", &words).arg(&pins));
    let kept = pinned(&pins, "stations");
    assert!(
        // 02:aa:00:00:00:01 in words.
        kept.iter().any(|e| e.contains("[43522,0,256]")),
        "{kept:?}"
    );
}

/// A bridge, most of whose packets only read and refresh.
#[test]
fn verify_replays_the_order_of_commits() {
    let verify = |words: &[&str]| {
        let mut command = millrace();
        command
            .args(["verify", "bridge", "--cores", "1,2,4,8"])
            .args(words);
        json(&mut command)
    };
    let words = ["--in", "captures/talk.pcap", "--split", SPLIT];
    let (found, status) = verify(&words);
    assert_eq!((status, &found["equal"]), (0, &true.into()), "{found}");
    let runs = found["runs"].as_array().unwrap();
    assert!(runs.iter().all(|r| r["compared"] == 1619));
    for run in runs.iter().skip(1) {
        assert_eq!(run["strategy"], "lock");
        let writers = run["writers"].as_u64().unwrap();
        assert!(writers > 0 && writers < 1619, "{run}");
    }
    let made = "packets=100000,flows=1000,churn=5000";
    let (found, status) = verify(&["--generate", made, "--schedule", "threads"]);
    assert_eq!((status, &found["equal"]), (0, &true.into()), "{found}");
}

#[test]
fn all_that_a_function_writes_can_be_locked() {
    let functions = ["firewall", "psd", "nat", "policer", "hhh", "cl", "lb"];
    for nf in of_today("functions under the lock on four cores", functions, 3) {
        let mut command = millrace();
        command
            .args(["verify", nf, "--cores", "4", "--strategy", "lock"])
            .args(["--in", "captures/talk.pcap", "--split", SPLIT]);
        let found = success(&mut command);
        assert_eq!(found["equal"], true, "{nf}: {found}");
        let run = &found["runs"][0];
        assert_eq!(
            (&run["strategy"], &run["compared"]),
            (&"lock".into(), &1619.into()),
            "{nf}"
        );
        assert!(run["writers"].as_u64() > Some(0), "{nf}: {run}");
    }
    let account = success(&mut run(
        "firewall",
        &["--cores", "4", "--strategy", "lock"],
    ));
    assert_eq!(account["read"], 1619);
    assert_eq!(named(&account["objects"], "flows").get("by_worker"), None);
}

/// Counts packets and bytes by port, and starts each count at a thousand.
const COUNTS: &str = r#"
#include <millrace/nf.h>

struct count { __u32 packets; __u32 zero; __u64 bytes; };
VECTOR(counts, struct count, .capacity = 2);

ON_START()
{
	struct count *count = vector_at(&counts, 1);

	if (count)
		count->bytes = 1000;
}

ON_PACKET(p)
{
	struct count *count = vector_at(&counts, p->port & 1);

	if (count) {
		count->packets += 1;
		count->bytes += packet_length(p);
	}
	return FORWARD(1 - (p->port & 1));
}
"#;

#[test]
fn what_each_worker_adds_is_summed() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("counts.c");
    std::fs::write(&source, COUNTS).unwrap();
    let nf = source.to_str().unwrap();
    let mut kept = Vec::new();
    for cores in ["1", "2", "5"] {
        let pins = dir.path().join(format!("pins{cores}"));
        // The second run goes on from where the first ended.
        for _ in 0..2 {
            let mut command = run(nf, &["--cores", cores, "--pin-all", "--pin"]);
            let (output, said) = output(command.arg(&pins));
            assert!(output.status.success(), "{said}");
            if cores != "1" {
                assert!(
                    said.contains("each worker adds to its own: counts"),
                    "{said}"
                );
            }
            kept.push(pinned(&pins, "counts"));
        }
        let (account, _) = json(&mut run(nf, &["--cores", cores]));
        let counts = named(&account["objects"], "counts");
        assert_eq!(
            (&counts["entries"], &counts["capacity"]),
            (&2.into(), &2.into())
        );
    }
    assert_eq!((&kept[2], &kept[3]), (&kept[0], &kept[1]));
    assert_eq!((&kept[4], &kept[5]), (&kept[0], &kept[1]));
    assert!(kept[0] != kept[1]);
    let mut verify = millrace();
    verify
        .args(["verify", nf, "--cores", "2,4", "--in", "captures/talk.pcap"])
        .args(["--split", SPLIT]);
    let found = success(&mut verify);
    assert_eq!(found["equal"], true, "{found}");
}

#[test]
fn what_no_lock_can_guard_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bridge");
    let mut build = millrace();
    let (built, said) = output(build.args(["build", "bridge", "-o"]).arg(&bundle));
    assert!(built.status.success(), "{said}");
    let said = refused(&mut run(bundle.to_str().unwrap(), &["--cores", "2"]), 2);
    assert!(said.contains("built with state for one core"), "{said}");
}
