//! Traffic that is skewed as far as it can be: all packets to one server, from one /8, of one index of the table.

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{capture, millrace, named, success, udp};
use serde_json::Value;

const SPLIT: &str = "lan=10.0.0.0/8";
/// As many workers as the acceptance of skewed traffic asks for.
const WORKERS: &str = "16";
const HOSTS: u32 = 20_000;

/// A host of the LAN, with a port of its own.
fn host(n: u32) -> ([u8; 4], u16) {
    let address = [10, 1 + (n >> 16) as u8, (n >> 8) as u8, n as u8];
    (address, 1024 + (n.wrapping_mul(7919) % 64_000) as u16)
}

/// Every host asks the resolver, so many times.
fn queries(path: &Path, hosts: u32, times: u64) {
    let frames = (0..times).flat_map(|turn| (0..hosts).map(move |n| (turn, n)));
    let packets = frames.map(|(turn, n)| {
        let time = 1_000_000_000 + turn * 1_000_000_000 + u64::from(n) * 1000;
        (time, udp(host(n), ([8, 8, 8, 8], 53)))
    });
    capture(path, &packets.collect::<Vec<_>>());
}

fn run(nf: &str, input: &Path, words: &[&str]) -> Value {
    let out = input.with_extension("out.pcap");
    let mut command: Command = millrace();
    command
        .args(["run", nf, "--split", SPLIT, "--control", "none"])
        .args([Path::new("--in"), input, Path::new("--out"), &out])
        .args(words);
    success(&mut command)
}

/// The busiest worker's packets over the mean.
fn imbalance(account: &Value) -> f64 {
    let workers = account["workers"].as_array().unwrap();
    let packets = || workers.iter().map(|w| w["packets"].as_u64().unwrap());
    let mean = packets().sum::<u64>() as f64 / workers.len() as f64;
    packets().max().unwrap() as f64 / mean
}

#[test]
fn hosts_that_ask_one_resolver_are_translated_on_all_workers() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("resolver.pcap");
    queries(&input, HOSTS, 2);
    // Keys are fresh at each run.
    for _ in 0..3 {
        let account = run("nat", &input, &["--cores", WORKERS]);
        assert_eq!(account["forwarded"], 2 * HOSTS, "{account}");
        assert_eq!(account["dropped"], 0);
        assert_eq!(account.get("relaxations"), None);
        assert_eq!(named(&account["objects"], "flows")["entries"], HOSTS);
        let imbalance = imbalance(&account);
        assert!(imbalance <= 1.5, "{imbalance}: {}", account["workers"]);
    }
}

/// With numbers for fewer flows than there are: some index of the table has none left while others have, and that is
/// said.
#[test]
fn numbers_of_an_index_that_run_out_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("resolver.pcap");
    queries(&input, 900, 1);
    let words = ["--cores", "4", "--capacity", "leases=1024"];
    let account = run("nat", &input, &words);
    let refused = account["reasons"]["table_full"].as_u64().unwrap();
    assert!(refused > 0, "{account}");
    assert_eq!(account["relaxations"]["capacity"], refused, "{account}");
    let full = named(&account["objects"], "leases")["full_by_worker"]
        .as_array()
        .unwrap();
    let full: u64 = full.iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(full, refused);
    let workers = account["workers"].as_array().unwrap();
    let of_each: u64 = workers.iter().map(|w| w["full"].as_u64().unwrap()).sum();
    assert_eq!(of_each, refused);
}

/// With a checksum (RFC 768).
fn summed(mut frame: Vec<u8>) -> Vec<u8> {
    let words = frame[26..].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = sum + 17 + 26;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[40..42].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn the_resolvers_answers_find_their_flows() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("talk.pcap");
    let mut packets = Vec::new();
    for n in 0..1500_u32 {
        let time = 1_000_000_000 + u64::from(n) * 100_000;
        packets.push((time, summed(udp(host(n), ([8, 8, 8, 8], 53)))));
        packets.push((time + 50_000, summed(udp(([8, 8, 8, 8], 53), host(n)))));
    }
    capture(&input, &packets);
    let mut command = millrace();
    command
        .args(["verify", "nat", "--split", SPLIT, "--cores", WORKERS])
        .args([Path::new("--in"), &input]);
    let found = success(&mut command);
    assert_eq!(found["runs"][0]["redirected"], 1500, "{found}");
}

/// All of one /8 has to meet on one worker, which has room for all that was declared.
#[test]
fn one_large_network_has_the_whole_capacity() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("network.pcap");
    let packets = (0..HOSTS).map(|n| {
        let from = [77, (n >> 8) as u8, n as u8, 1];
        let time = 1_000_000_000 + u64::from(n) * 10_000;
        (time, udp((from, 40_000), ([10, 0, 0, 1], 53)))
    });
    capture(&input, &packets.collect::<Vec<_>>());
    let plan = success(millrace().args(["plan", "hhh"]));
    let wan = plan["ports"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["name"] == "WAN");
    let kinds = wan.unwrap()["kinds"].as_array().unwrap();
    let udp4 = kinds.iter().find(|k| k["kind"] == "ipv4-udp").unwrap();
    let said = serde_json::json!([{
        "fields": [{ "field": "source-address", "bits": 8, "of": 32, "prefix": true }],
        "cores": 1,
        "traffic": "packets from one /8",
    }]);
    assert_eq!(udp4["degenerate"], said, "{udp4}");
    let account = run("hhh", &input, &["--cores", WORKERS]);
    assert_eq!(account["forwarded"], HOSTS, "{account}");
    assert_eq!(named(&account["objects"], "small")["entries"], HOSTS);
    assert_eq!(account.get("relaxations"), None);
}

/// A key of zeros brings every packet to one worker: it takes what one core takes, and refuses what one core refuses.
#[test]
fn a_part_has_room_for_the_declared_capacity_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("flows.pcap");
    queries(&input, 1200, 1);
    let nothing = format!("key={}", "00".repeat(40));
    let one = run("firewall", &input, &["--capacity", "flows=1000"]);
    let words = ["--capacity", "flows=1000", "--cores", "16", "--steer"];
    let account = run("firewall", &input, &[&words[..], &[&nothing]].concat());
    assert_eq!(one["reasons"]["table_full"], 200, "{one}");
    for same in ["forwarded", "dropped", "reasons"] {
        assert_eq!(account[same], one[same], "{same}");
    }
    assert_eq!(named(&account["objects"], "flows")["entries"], 1000);
    assert_eq!(account.get("relaxations"), None);
}

/// An LRU map gives up an entry only where one core would have, as long as all comes to one worker.
#[test]
fn what_was_used_lately_stays_until_the_whole_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("sources.pcap");
    // All sources of one /24 and then those that are over the capacity: the first come back, and are known or not.
    let packets = (0..3_u32).flat_map(|turn| (0..80_u32).map(move |n| (turn, n)));
    let packets = packets.map(|(turn, n)| {
        let time = 1_000_000_000 + u64::from(turn * 1000 + n) * 10_000;
        (
            time,
            udp(([77, 0, 0, n as u8], 40_000), ([10, 0, 0, 1], 53)),
        )
    });
    capture(&input, &packets.collect::<Vec<_>>());
    let source = dir.path().join("lately.c");
    std::fs::write(&source, LATELY).unwrap();
    let source = source.to_str().unwrap();
    for (capacity, refused) in [(80, 80), (64, 0)] {
        let sized = format!("sources={capacity}");
        let run = |more: &[&str]| {
            let out = input.with_extension("out.pcap");
            let mut command = millrace();
            command
                .args(["run", source, "--control", "none", "--capacity", &sized])
                .args([Path::new("--in"), &input, Path::new("--out"), &out])
                .args(more);
            success(&mut command)
        };
        let nothing = format!("key={}", "00".repeat(40));
        let one = run(&[]);
        let some = run(&["--cores", "8", "--steer", &nothing]);
        for same in ["forwarded", "dropped", "passed"] {
            assert_eq!(some[same], one[same], "{same} of {capacity}: {some}");
        }
        assert_eq!(
            named(&some["objects"], "sources")["entries"],
            named(&one["objects"], "sources")["entries"]
        );
        assert_eq!(some.get("relaxations"), None, "{some}");
        if refused > 0 {
            assert_eq!(one["dropped"], refused, "{one}");
        }
    }
}

/// Drops a source's first packet.
const LATELY: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 80); __type(key, __u32); __type(value, __u32); }
    sources SEC(".maps");
SEC("xdp") int lately(struct xdp_md *ctx)
{
    __u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    __u32 key, value = 1;

    if (data + 34 > end || data[12] != 8 || data[13] != 0 || data[14] != 0x45)
        return XDP_PASS;
    key = *(__u32 *)(data + 26);
    if (bpf_map_lookup_elem(&sources, &key))
        return XDP_TX;
    bpf_map_update_elem(&sources, &key, &value, BPF_ANY);
    return XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"#;
