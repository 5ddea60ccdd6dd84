//! Predictions from measurements, tables balanced to a trace, and benchmarks over cores, from outside.

use crate::common;

use std::path::Path;

use common::{json, millrace, output, refused, success};
use serde_json::Value;

const SPLIT: &str = "lan=10.0.0.0/16";

/// A trace whose flows differ in weight.
fn trace(path: &Path) {
    let mut command = millrace();
    command
        .args(["trace", "gen", "--packets", "8000", "--flows", "400"])
        .args(["--zipf", "0.8", "--size", "64", "-o"])
        .arg(path);
    assert!(output(&mut command).0.status.success());
}

fn processors() -> u64 {
    std::thread::available_parallelism().unwrap().get() as u64
}

/// The first and the last processor that this process may use.
fn ends() -> (String, String) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    let mut numbers = list.unwrap().trim().split([',', '-']);
    let first = numbers.next().unwrap().to_owned();
    (
        first.clone(),
        numbers.next_back().map_or(first, str::to_owned),
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// One flow: no key divides it, each packet writes, and replicas share its packets.
#[test]
fn a_plan_replicates_what_one_flow_fills() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pcap");
    let mut command = millrace();
    command
        .args(["trace", "gen", "--packets", "4000", "--flows", "1"])
        .args(["--size", "64", "-o"])
        .arg(&path);
    assert!(output(&mut command).0.status.success());
    let mut command = millrace();
    command
        .args(["plan", "heavyhitter", "--cores", "8", "--in"])
        .arg(&path);
    let plan = success(&mut command);
    assert_eq!(plan["grounds"], "measured", "{plan}");
    assert_eq!(plan["history"]["bytes"], 15);
    let predicted = plan["predicted"].as_array().unwrap();
    let of = |strategy: &str| {
        let mut all = predicted.iter();
        let found = all.find(|p| p["strategy"] == strategy && p["cores"] == 8);
        number(&found.unwrap_or_else(|| panic!("{strategy}: {plan}"))["mpps"])
    };
    // What is faster here is a question of the machine and what else it does; that it decides is not.
    let fastest = of("replicate") > of("shard").max(of("lock")) * 1.1;
    assert!(!fastest || plan["strategy"] == "replicate", "{plan}");
    if plan["strategy"] != "replicate" {
        return;
    }
    let flows = common::named(&plan["objects"], "flows");
    assert_eq!(flows["treatment"], "replicate");
    assert_eq!(flows["rule"], "R7");
    let relaxations = plan["relaxations"].as_array().unwrap();
    let names: Vec<_> = relaxations.iter().map(|r| &r["name"]).collect();
    for name in ["order", "lost"] {
        assert!(names.iter().any(|n| *n == name), "{names:?}");
    }
}

#[test]
fn a_plan_with_a_trace_predicts_and_takes_the_fastest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pcap");
    trace(&path);
    let mut command = millrace();
    command
        .args(["plan", "policer", "--cores", "8", "--split", SPLIT, "--in"])
        .arg(&path);
    let plan = success(&mut command);
    assert_eq!(plan["grounds"], "measured", "{plan}");
    let measured = &plan["measured"];
    assert_eq!(measured["packets"], 8000);
    assert_eq!(measured["processors"], processors());
    assert!(number(&measured["dispatch_ns"]) > 0.0);
    let strategies = measured["strategies"].as_array().unwrap();
    let names: Vec<_> = strategies.iter().map(|s| &s["strategy"]).collect();
    let wanted = ["shard", "lock", "transact", "replicate", "alone", "hybrid"];
    assert_eq!(names, wanted, "{measured}");
    for s in strategies {
        assert!(number(&s["packet_ns"]) > 0.0, "{s}");
        let replica = s["strategy"] == "replicate" || s["strategy"] == "hybrid";
        for key in ["replay_ns", "sequencer_ns"] {
            let there = s[key].as_f64().is_some_and(|ns| ns > 0.0);
            assert_eq!(there, replica, "{s}");
        }
        let writes = number(&s["writes"]);
        // The policer takes from a bucket with every packet that it passes.
        assert!(
            if s["strategy"] == "lock" {
                writes > 0.1
            } else {
                writes == 0.0
            },
            "{s}"
        );
        let mut before = 1.0;
        for share in s["busiest"].as_array().unwrap() {
            let (cores, share) = (number(&share["cores"]), number(&share["share"]));
            assert!(share <= before + 1e-9 && share >= 1.0 / cores - 1e-9, "{s}");
            assert!(share >= number(&s["heaviest"]) - 1e-9, "{s}");
            before = share;
        }
    }
    let predicted = plan["predicted"].as_array().unwrap();
    let of = |strategy: &str, cores: u64| {
        let found = predicted
            .iter()
            .find(|p| p["strategy"] == strategy && p["cores"] == cores);
        found.map(|p| number(&p["mpps"]))
    };
    for p in predicted {
        assert_eq!(p["simulated"], p["cores"].as_u64().unwrap() > processors());
    }
    // One core: dispatch and function, nothing else.
    for s in strategies {
        let time = number(&measured["dispatch_ns"]) + number(&s["packet_ns"]);
        let Some(rate) = of(s["strategy"].as_str().unwrap(), 1) else {
            // On one core no key is replicated.
            assert_eq!(s["strategy"], "hybrid");
            continue;
        };
        assert!((rate * time / 1e3 - 1.0).abs() < 1e-6, "{s}: {rate}");
    }
    assert!(of("shard", 8) > of("shard", 1) && of("alone", 2).is_none());
    // Nearly all packets write: whatever the lock costs here, eight cores that wait lose to eight that do not.
    assert_eq!(plan["strategy"], "shard");
    if processors() > 1 {
        assert!(of("lock", 8) < of("shard", 8), "{plan}");
        assert!(number(&measured["lock"]["core_ns"]) >= 0.0);
    } else {
        println!("skipped: what the lock costs between cores needs two processors");
    }

    let (said, _) = output(
        millrace()
            .args(common::words(&format!(
                "plan policer --strategy lock --split {SPLIT} --in"
            )))
            .arg(&path),
    );
    let text = String::from_utf8(said.stdout).unwrap();
    let row = |name: &str| {
        let mut rows = text.lines().filter(|l| l.starts_with("  "));
        rows.find(|l| l.split_whitespace().next() == Some(name) && l.contains('.'))
            .unwrap_or_else(|| panic!("{name}: {text}"))
            .to_owned()
    };
    assert!(
        row("lock").ends_with('*') && !row("alone").ends_with('*'),
        "{text}"
    );
    assert!(text.contains("~ simulated"), "{text}");
}

#[test]
fn a_plan_without_a_trace_claims_no_rate() {
    let plan = success(millrace().args(["plan", "policer"]));
    assert_eq!(plan["grounds"], "order");
    assert_eq!(plan["predicted"].as_array().map(Vec::len), Some(0));
    assert!(plan["measured"].is_null());
    let (said, _) = output(millrace().args(["plan", "policer"]));
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(
        text.contains("nothing was measured, so no rate is predicted"),
        "{text}"
    );
    let (plan, _) = json(millrace().args(["plan", "policer", "--strategy", "sequential"]));
    assert_eq!(plan["strategy"], "alone");
    assert_eq!(
        (&plan["grounds"], &plan["cores"]),
        (&"asked".into(), &1.into())
    );
}

#[test]
fn traces_that_tell_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let short = dir.path().join("short.pcap");
    common::capture(&short, &common::each_byte());
    let plan = |path: &Path| {
        let mut command = millrace();
        command.args(["plan", "policer", "--in"]).arg(path);
        refused(&mut command, 2)
    };
    assert!(plan(&short).contains("9 packets are too few"));
    assert!(plan(Path::new("/nonexistent.pcap")).contains("/nonexistent.pcap"));
    let wrong = refused(
        millrace().args(common::words(
            "run policer --in captures/talk.pcap --trace a.pcap",
        )),
        2,
    );
    assert!(wrong.contains("--cores"), "{wrong}");
}

#[test]
fn a_table_is_balanced_to_a_trace_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pcap");
    trace(&path);
    let mut command = millrace();
    command
        .args(["run", "policer", "--cores", "4", "--control", "none"])
        .args(["--split", SPLIT, "--json", "--in"])
        .arg(&path)
        .arg("--trace")
        .arg(&path);
    let (done, said) = output(&mut command);
    assert!(done.status.success(), "{said}");
    let account: Value = serde_json::from_slice(&done.stdout).unwrap();
    let packets: Vec<f64> = account["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| number(&w["packets"]))
        .collect();
    assert!((packets.iter().sum::<f64>() - 8000.0).abs() < 1e-9);
    let imbalance = packets.iter().copied().fold(0.0, f64::max) * 4.0 / 8000.0;
    // Asked for, it is one worker and nothing is balanced.
    let (one, status) = json(
        millrace()
            .args(["run", "policer", "--cores", "4", "--control", "none"])
            .args(["--strategy", "sequential", "--split", SPLIT, "--in"])
            .arg(&path),
    );
    assert_eq!((status, &one["read"]), (0, &account["read"]));
    assert_eq!(one["workers"].as_array().map(Vec::len), Some(1), "{one}");
    assert_eq!(one["forwarded"], account["forwarded"]);
    // What it promised is what the workers had.
    let promised = format!("the busiest worker has {imbalance:.2} times the mean");
    assert!(said.contains(&promised), "{promised}: {said}");
    // Packets of the LAN touch no bucket and go anywhere: they have one entry each address at least.
    assert!(imbalance < 1.5, "{said}");
}

#[test]
fn a_benchmark_from_memory_has_a_processor_for_each_worker() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pcap");
    trace(&path);
    let mut command = millrace();
    command
        .args([
            "bench", "policer", "--memory", "--repeat", "2", "--cores", "1,2,5000",
        ])
        .args(["--split", SPLIT, "--in"])
        .arg(&path);
    let document = success(&mut command);
    let runs = document["runs"].as_array().unwrap();
    let cores: Vec<_> = runs.iter().map(|r| r["cores"].as_u64().unwrap()).collect();
    let expected: &[u64] = if processors() > 1 { &[1, 2] } else { &[1] };
    assert_eq!(cores, expected, "{document}");
    for run in runs {
        let one = run["cores"] == 1;
        assert_eq!(run["strategy"], if one { "alone" } else { "shard" });
        assert_eq!(run["port"], "memory");
        assert!(number(&run["mpps"]) > 0.0, "{run}");
        // Times of bursts, which several workers do not share out alike.
        assert_eq!(run["p99_ns"].as_f64().is_some(), one, "{run}");
        assert_eq!(
            run["load"].as_array().map(Vec::len),
            run["cores"].as_u64().map(|n| n as usize)
        );
        assert!(
            (1.0 - 1e-9..2.0).contains(&number(&run["imbalance"])),
            "{run}"
        );
    }
    let skipped = document["skipped"].to_string();
    assert!(
        skipped.contains("5000 workers need 5000 processors"),
        "{skipped}"
    );
}

#[test]
fn a_benchmark_on_several_workers_tells_the_nic_the_plan() {
    if processors() < 2 {
        println!("skipped: two processors are needed, and there is one");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.pcap");
    trace(&path);
    let (first, last) = ends();
    let cpus = format!("{first},{last},{first}");
    // The NIC's thread shares a worker's processor: the figures say nothing, the division does. On a busy machine
    // it takes a while until both workers have run.
    let mut both = false;
    for trial in ["0.1", "1", "5"] {
        let mut command = millrace();
        command
            .args(["bench", "policer", "--no-limit", "--repeat", "1"])
            .args(["--cores", "2", "--cpus", &cpus, "--rate", "200k"])
            .args(["--trial", trial, "--split", SPLIT, "--in"])
            .arg(&path);
        let document = success(&mut command);
        let [run] = document["runs"].as_array().unwrap().as_slice() else {
            panic!("{document}");
        };
        let as_what = (&run["strategy"], &run["port"], &run["cores"]);
        assert_eq!(as_what, (&"shard".into(), &"vnic".into(), &2.into()));
        let load: Vec<f64> = run["load"].as_array().unwrap().iter().map(number).collect();
        both = load.len() == 2 && load.iter().all(|part| *part > 0.0);
        if both {
            break;
        }
    }
    assert!(both);
    // A function that cannot run like this is named, with the plan's reason.
    let mut command = millrace();
    command
        .args(common::words(
            "bench policer --memory --cores 1,2 --strategy spread",
        ))
        .args(["--repeat", "1", "--split", SPLIT, "--in"])
        .arg(&path);
    let document = success(&mut command);
    assert!(
        document["skipped"].to_string().contains("buckets"),
        "{document}"
    );
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(1));
}
