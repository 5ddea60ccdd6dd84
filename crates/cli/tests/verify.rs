//! `millrace verify` over the bundled trace and generated traffic.

use crate::common;

use std::process::Command;

use common::{SPLIT, json, millrace, over, success, symmetric, udp};
use millrace_turns::of_today;
use serde_json::Value;

fn verify(nf: &str, words: &[&str]) -> Command {
    let mut command = millrace();
    command.args(["verify", nf]).args(words);
    command
}

#[test]
fn a_steering_that_keeps_flows_together_is_equal_and_another_is_shown() {
    let words = ["--cores", "1,2,8", "--steer", &symmetric()];
    let found = success(&mut over("verify", "firewall", &words));
    assert_eq!(found["equal"], true, "{found}");
    assert_eq!(
        (&found["packets"], &found["workers"]),
        (&1619.into(), &8.into())
    );
    assert!(found["differences"].as_array().unwrap().is_empty());
    assert_eq!(found["runs"].as_array().unwrap().len(), 3);

    let (found, status) = json(&mut over(
        "verify",
        "firewall",
        &["--cores", "4", "--steer", "nic=generic"],
    ));
    assert_eq!((status, &found["equal"]), (1, &false.into()));
    let first = &found["differences"][0];
    assert_eq!(first["kind"], "verdict");
    assert_eq!(first["sequential"]["fate"], "forwarded to LAN");
    assert_eq!(first["parallel"]["fate"], "dropped: no_flow");
    assert!(
        first["parts"]["line"]
            .as_str()
            .unwrap()
            .contains("firewall.c:")
    );
    let entry = &first["state"][0];
    assert_eq!(entry["object"], "flows");
    let holders = entry["parallel"].as_array().unwrap();
    assert!(holders.iter().any(|w| !w["before"].is_null()), "{entry}");
}

#[test]
fn leases_may_be_other_ones() {
    let lan = "LAN:nic=software&fields=destination-address";
    let wan = "WAN:nic=software&fields=source-address";
    let made = "packets=20000,flows=200,churn=1500,rate=1000";
    let words = format!("--generate {made} --cores 4 --steer {lan} --steer {wan}");
    let words = common::words(&words);
    let found = success(&mut verify("nat", &words));
    let run = &found["runs"][0];
    assert_eq!(run["relaxations"][0]["name"], "lease");
    assert!(run["redirected"].as_u64().unwrap() > 1000);
}

/// Forwarded ports beside flows of the LAN: every core has all forwards, and what comes to them goes to any core.
#[test]
fn forwarded_ports_are_served_by_every_core() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (public, server) = ([192, 0, 2, 1], [10, 0, 0, 5]);
    let (mut lan, mut wan) = (Vec::new(), Vec::new());
    for n in 0..2000_u16 {
        let (time, client) = (u64::from(n) * 1_000_000, [198, 51, 100, n as u8]);
        wan.push((time, udp((client, 5000 + n), (public, 53))));
        lan.push((time, udp((server, 5353), (client, 5000 + n))));
        lan.push((time, udp(([10, 0, 1, n as u8], n), (client, 443))));
    }
    common::capture(&folder.path().join("lan.pcap"), &lan);
    common::capture(&folder.path().join("wan.pcap"), &wan);
    let there = "192.0.2.1 be16:53 u8:17 zeros:1";
    let here = "10.0.0.5 be16:5353 u8:17 zeros:1";
    let target = |words: &str| words.replace(" u8:17 zeros:1", " zeros:2");
    std::fs::write(file("forwards"), format!("{there},{}\n", target(here))).unwrap();
    std::fs::write(file("servers"), format!("{here},{}\n", target(there))).unwrap();
    let captures = format!("{},{}", file("lan.pcap"), file("wan.pcap"));
    let forwards = format!("forwards={}", file("forwards"));
    let servers = format!("servers={}", file("servers"));
    let mut words = vec!["--in", &captures, "--map", &forwards, "--map", &servers];
    // All are forwarded: without the maps, what comes to the port is nobody's.
    let (account, _) = json(millrace().args(["run", "nat"]).args(&words));
    assert_eq!(account["forwarded"], 6000, "{account:#}");
    let (account, _) = json(millrace().args(["run", "nat", "--in", &captures]));
    assert_eq!(account["reasons"]["no_flow"], 2000, "{account:#}");
    words.extend(["--cores", "1,2,4"]);
    let found = success(&mut verify("nat", &words));
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    for run in runs {
        assert_eq!(run["compared"], 6000, "{run}");
        let workers = run["workers"].as_u64().unwrap();
        assert_eq!(run["strategy"] == "shard", workers > 1, "{run}");
    }
}

/// A question where the router's 10.0.`port`.254 is, from 10.0.`port`.`host` (RFC 826).
fn who_has(port: u8, host: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    let sender = [2, 0, 0, 0, port, host];
    frame.extend(sender);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(sender);
    frame.extend([10, 0, port, host, 0, 0, 0, 0, 0, 0, 10, 0, port, 254]);
    frame
}

/// Stations come and are asked for, errors are sent and refused, while others' packets pass: all under locks.
#[test]
fn a_router_is_equal_on_several_cores() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut captures = [Vec::new(), Vec::new()];
    for n in 0..4000_u32 {
        let (time, port) = (1_000_000_000 + u64::from(n) * 3_000_000, n as u8 & 1);
        let host = 1 + (n * 7919 % 29) as u8;
        let source = ([10, 0, port, host], n as u16);
        let packet = match n % 11 {
            0 => who_has(port, host),
            1 => udp(source, ([10, 0, port, 254], 33434)),
            2 => udp(source, ([9, 9, 9, 9], 53)),
            _ => udp(source, ([10, 0, 1 - port, 1 + (n % 40) as u8], 53)),
        };
        captures[usize::from(port)].push((time, packet));
    }
    common::capture(&folder.path().join("0.pcap"), &captures[0]);
    common::capture(&folder.path().join("1.pcap"), &captures[1]);
    // Frames of `udp` are for 02:00:00:00:00:01.
    let interface =
        |port| format!("{port},10.0.{port}.254 u8:24 zeros:19 02:00:00:00:00:01 zeros:2\n");
    std::fs::write(file("interfaces"), interface(0) + &interface(1)).unwrap();
    let captures = format!("{},{}", file("0.pcap"), file("1.pcap"));
    let interfaces = format!("interfaces={}", file("interfaces"));
    let rate = "errors_a_second=10";
    let words = ["--in", &captures, "--map", &interfaces, "--set", rate];
    let (account, _) = json(millrace().args(["run", "router"]).args(words));
    let dropped = |reason: &str| account["reasons"][reason].as_u64() > Some(10);
    assert!(
        dropped("unresolved") && dropped("error_rate"),
        "{account:#}"
    );
    assert!(account["forwarded"].as_u64() > Some(2000), "{account:#}");
    let cores = [&words[..], &["--cores", "1,2,4"]].concat();
    let found = success(&mut verify("router", &cores));
    for run in &found["runs"].as_array().unwrap()[1..] {
        assert_eq!(run["strategy"], "lock", "{run}");
        assert!(run["writers"].as_u64() > Some(300), "{run}");
    }
}

/// What workers share and is not compared (a queue, variables) is shared for all that: the next packet tells.
#[test]
fn what_is_not_compared_is_locked_for_all_that() {
    let text = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 64); __type(value, __u32); } queue SEC(".maps");
static __u32 turn;
SEC("xdp") int by_turn(struct xdp_md *ctx) { return turn++ & 1 ? XDP_DROP : XDP_PASS; }
SEC("xdp") int by_queue(struct xdp_md *ctx)
{
	__u32 v = 7;
	if (!bpf_map_pop_elem(&queue, &v))
		return XDP_DROP;
	bpf_map_push_elem(&queue, &v, 0);
	return XDP_PASS;
}
char _license[] SEC("license") = "GPL";
"#;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("turns.c");
    std::fs::write(&source, text).unwrap();
    for program in ["by_turn", "by_queue"] {
        let words = format!("--program {program} --cores 4 --in captures/talk.pcap");
        let words = common::words(&words);
        let (found, status) = json(&mut verify(source.to_str().unwrap(), &words));
        assert_eq!(
            (status, &found["equal"]),
            (0, &Value::Bool(true)),
            "{program}: {found}"
        );
    }
}

#[test]
fn maps_of_maps_bar_no_lock_of_what_is_not_found_in_them() {
    let text = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64);
} one SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 1); __type(key, __u32);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { &one } };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u32);
} turn SEC(".maps");
SEC("xdp") int beside(struct xdp_md *ctx)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&turn, &zero);
	return n && (*n)++ & 1 ? XDP_DROP : XDP_PASS;
}
SEC("xdp") int both(struct xdp_md *ctx)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&turn, &zero);
	void *found = bpf_map_lookup_elem(&outer, &zero);
	if (!n || !found)
		return XDP_ABORTED;
	return bpf_map_lookup_elem(found, &zero) && (*n)++ & 1 ? XDP_DROP : XDP_PASS;
}
SEC("xdp") int within(struct xdp_md *ctx)
{
	__u32 zero = 0;
	void *found = bpf_map_lookup_elem(&outer, &zero);
	if (!found)
		return XDP_ABORTED;
	__u64 *n = bpf_map_lookup_elem(found, &zero);
	return n && (*n)++ & 1 ? XDP_DROP : XDP_PASS;
}
char _license[] SEC("license") = "GPL";
"#;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("nested.c");
    std::fs::write(&source, text).unwrap();
    let words = ["--cores", "4", "--in", "captures/talk.pcap", "--program"];
    for program in ["beside", "both"] {
        let words = [&words[..], &[program]].concat();
        let (found, status) = json(&mut verify(source.to_str().unwrap(), &words));
        assert_eq!(
            (status, &found["equal"]),
            (0, &Value::Bool(true)),
            "{program}: {found}"
        );
        let runs = found["runs"].as_array().unwrap();
        assert!(
            runs.iter().all(|r| r["strategy"] == "lock"),
            "{program}: {found}"
        );
    }
    let words = [&words[..], &["within"]].concat();
    let output = verify(source.to_str().unwrap(), &words).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("found in another map"), "{told}");
}

#[test]
fn wrong_use_is_explained() {
    for (words, why) in [
        (&["--in", "captures/missing.pcap"][..], "missing.pcap"),
        (&["--in", "-"], "read once"),
        (&["--generate", "flow=1"], "flow=1"),
        (&["--generate", "flows=0"], "0 flows"),
        (&["--generate", "", "--cores", "0"], "no number of cores"),
        (
            &["--generate", "packets=10", "--cores", "200"],
            "128 entries",
        ),
        (&["--generate", "packets=10", "--nic", "e1000"], "no model"),
    ] {
        let output = verify("nop", words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(
            told.contains(why) && told.contains("help:"),
            "{words:?}: {told}"
        );
    }
}

/// A program of crates/plan's tests.
fn planned(name: &str) -> String {
    format!("crates/plan/tests/programs/{name}.c")
}

const CHURN: [&str; 2] = [
    "--generate",
    "packets=20000,flows=300,churn=300,rate=200,mix=tcp:4+udp:4+icmp:1",
];

#[test]
fn numbers_come_home_as_the_plan_says() {
    let cone = planned("cone");
    for traffic in [
        &CHURN[..],
        &["--in", "captures/talk.pcap", "--split", SPLIT],
    ] {
        let mut command = verify(&cone, traffic);
        let found = success(command.args(["--cores", "1,2,4,8"]));
        assert_eq!(found["equal"], true, "{found}");
        for run in found["runs"].as_array().unwrap().iter().skip(1) {
            assert_eq!(run["strategy"], "shard");
            assert!(run["redirected"].as_u64().unwrap() > 100, "{run}");
            let names = run["relaxations"].as_array().unwrap();
            assert!(names.iter().all(|r| r["name"] == "lease"), "{run}");
        }
    }
    // So few numbers that an index runs out while others have some: counted.
    let mut command = verify(&cone, &CHURN);
    let few = ["--cores", "4", "--capacity", "numbers=384"];
    let found = success(command.args(few));
    let names = found["runs"][0]["relaxations"].as_array().unwrap();
    let full = names.iter().find(|r| r["name"] == "capacity");
    assert!(full.unwrap()["packets"].as_u64().unwrap() > 0, "{found}");
}

#[test]
fn what_separates_is_sharded_and_only_the_rest_locked() {
    for name in of_today(
        "functions of which a part is locked",
        ["balancer", "two_counters"],
        2,
    ) {
        let mut command = verify(&planned(name), &CHURN);
        let found = success(command.args(["--cores", "2,4"]));
        assert_eq!(found["equal"], true, "{found}");
        for run in found["runs"].as_array().unwrap() {
            assert_eq!(run["strategy"], "mixed", "{name}");
        }
    }
}
