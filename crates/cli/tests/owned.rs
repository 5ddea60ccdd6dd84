//! Entries of a table that workers divide, set from outside: each is with the worker that has its packets, and with no other one, also where buckets move.

use crate::common;
use crate::common::live;

use std::path::{Path, PathBuf};

use common::{capture, json, millrace, output, refused, udp};
use live::Live;
use serde_json::Value;

/// Hosts that send.
const HOSTS: u32 = 96;

/// The address of a host, of which any key of the hash has bits.
fn address(host: u32) -> [u8; 4] {
    let far = |by: u32| (host.wrapping_mul(by) >> 3) as u8;
    [10, far(2_654_435_761), far(40_503), host as u8]
}

/// An address as people write it.
fn text(host: u32) -> String {
    address(host).map(|byte| byte.to_string()).join(".")
}

/// A program that lets packets of listed hosts pass, and counts them. `more` stands where a host is not listed.
pub fn program(folder: &Path, name: &str, more: &str) -> String {
    let source = format!(
        r#"#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {{
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
}} listed SEC(".maps");
SEC("xdp") int listed_only(struct xdp_md *ctx)
{{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 key;
	__u64 *n, first __attribute__((unused)) = 1;

	if (data + 42 > end || data[12] != 8 || data[13] != 0 || data[14] != 0x45)
		return XDP_DROP;
	__builtin_memcpy(&key, data + 26, 4);
	n = bpf_map_lookup_elem(&listed, &key);
	if (n) {{
		/* A limit, so that each worker has to see all of a host's. */
		if (++*n == 1000000000)
			return XDP_DROP;
		return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
	}}
	{more}
	return XDP_DROP;
}}
char _license[] SEC("license") = "GPL";
"#
    );
    let path = folder.join(name);
    std::fs::write(&path, source).unwrap();
    path.display().to_string()
}

/// Hosts with even numbers are put there by packets, others only from outside.
pub const EVEN: &str = "if (!(data[29] & 1)) bpf_map_update_elem(&listed, &key, &first, BPF_ANY);";

fn hosts(folder: &Path) -> PathBuf {
    let file = folder.join("hosts.pcap");
    let packets = (0..HOSTS).map(|host| {
        let to = ([10, 200, (host * 7) as u8, host as u8], 9);
        (1_000_000 + u64::from(host), udp((address(host), 7), to))
    });
    capture(&file, &packets.collect::<Vec<_>>());
    file
}

fn serving(folder: &Path, nf: &str, words: &[&str]) -> Live {
    let file = hosts(folder);
    let port = format!("vnic:{}?measure=off&depth=256&rate=4k", file.display());
    let own = format!("--ports {port} --cores 4 --strategy shard --seconds 600");
    let own = common::words(&own);
    let live = Live::of(folder, &[nf], &[&own[..], words].concat());
    live.until(|stats| stats["read"].as_u64() > Some(0));
    live
}

/// The entries of each worker.
fn by_worker(live: &Live) -> Vec<u64> {
    let shown = live.ask(&["map", "show", "listed"]);
    let all = shown["by_worker"].as_array().expect("parts").iter();
    all.map(|n| n.as_u64().unwrap()).collect()
}

/// Has so many workers have buckets. Where others use the machine the client gives up before all have moved, and asks again.
fn cores(live: &Live, count: &str) {
    let began = std::time::Instant::now();
    loop {
        let (done, said) = output(&mut live.command(&["ctl", "cores", count]));
        if done.status.success() {
            return;
        }
        assert!(began.elapsed() < 4 * live::LONG, "{said}");
        common::pause();
    }
}

/// Waits until packets of a host have hit its entry some times more.
fn hit(live: &Live, host: u32) {
    let count = || {
        live.ask(&["map", "get", "listed", &text(host)])["value"]
            .as_u64()
            .unwrap()
    };
    let (before, began) = (count(), std::time::Instant::now());
    while count() < before + 3 {
        assert!(
            began.elapsed() < live::LONG,
            "packets of host {host} find no entry"
        );
        common::pause();
    }
}

#[test]
fn an_entry_from_outside_is_with_the_worker_of_its_packets_wherever_buckets_move() {
    let dir = tempfile::tempdir().unwrap();
    let nf = program(dir.path(), "listed.c", "");
    let live = serving(dir.path(), &nf, &["--balance=0"]);
    assert_eq!(by_worker(&live), [0; 4]);
    let all: String = (0..HOSTS / 2)
        .map(|host| format!("{},0\n", text(host)))
        .collect();
    let file = dir.path().join("half.csv");
    std::fs::write(&file, all).unwrap();
    let file = file.display().to_string();
    let done = live.ask(&["map", "import", "listed", &file]);
    assert_eq!(done["set"], HOSTS / 2, "each entry at one worker: {done}");
    let parts = by_worker(&live);
    assert_eq!(parts.iter().sum::<u64>(), u64::from(HOSTS / 2), "{parts:?}");
    assert!(parts.iter().filter(|n| **n > 0).count() > 1, "{parts:?}");
    for host in [0, 5, 17, HOSTS / 2 - 1] {
        hit(&live, host);
    }
    // The table changes, and what comes from outside follows it; so does what was there.
    for wanted in ["1", "3", "2", "4"] {
        cores(&live, wanted);
        let count: u32 = wanted.parse().unwrap();
        let host = HOSTS / 2 + count;
        let done = live.ask(&["map", "set", "listed", &text(host), "0"]);
        assert_eq!(done["set"], 1, "{done}");
        hit(&live, host);
        hit(&live, 11);
        let parts = by_worker(&live);
        let beyond: u64 = parts.iter().skip(count as usize).sum();
        assert_eq!(beyond, 0, "entries where no packets come: {parts:?}");
    }
    let (rotated, said) = output(&mut live.command(&["ctl", "rotate"]));
    assert!(rotated.status.success(), "{said}");
    let host = HOSTS - 1;
    live.ask(&["map", "set", "listed", &text(host), "0"]);
    hit(&live, host);
    hit(&live, 11);
    let whole = live.ask(&["map", "show", "listed"]);
    assert_eq!(whole["entries"], HOSTS / 2 + 5, "{whole}");
    assert_eq!(
        by_worker(&live).iter().sum::<u64>(),
        u64::from(HOSTS / 2 + 5)
    );
    // Once over all workers, and gone from all.
    let listed = live.ask(&["map", "export", "listed"]);
    assert_eq!(
        listed.as_array().map(Vec::len),
        Some(HOSTS as usize / 2 + 5)
    );
    let done = live.ask(&["map", "delete", "listed", &text(11)]);
    assert_eq!(done["deleted"], 1, "{done}");
    let (done, said) = output(&mut live.command(&["map", "get", "listed", &text(11)]));
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("no such entry"), "{said}");
}

/// Entries that packets make, and entries from outside beside them, there before the first packet.
#[test]
fn contents_at_start_are_with_the_workers_of_their_packets() {
    let dir = tempfile::tempdir().unwrap();
    let nf = program(dir.path(), "made.c", EVEN);
    let odd: String = (0..HOSTS / 2)
        .map(|n| format!("{},0\n", text(2 * n + 1)))
        .collect();
    let start = dir.path().join("start.csv");
    std::fs::write(&start, odd).unwrap();
    let map = format!("listed={}", start.display());
    let live = serving(dir.path(), &nf, &["--map", &map]);
    for host in [1, 33, HOSTS - 1] {
        hit(&live, host);
    }
    let began = std::time::Instant::now();
    while by_worker(&live).iter().sum::<u64>() < u64::from(HOSTS) {
        assert!(began.elapsed() < live::LONG);
        common::pause();
    }
    let parts = by_worker(&live);
    assert_eq!(parts.iter().sum::<u64>(), u64::from(HOSTS), "{parts:?}");

    // The same as on one core.
    let capture = hosts(dir.path());
    for cores in ["2", "4"] {
        let mut verify = millrace();
        verify.args(["verify", &nf, "--cores", cores, "--strategy", "shard"]);
        verify.args(["--map", &map, "--in"]).arg(&capture);
        let (found, status): (Value, i32) = json(&mut verify);
        assert_eq!((status, &found["equal"]), (0, &true.into()), "{found}");
        assert_eq!(found["workers"].to_string(), cores, "{found}");
    }
}

/// All changes of a request are made, or none, also where it is another worker that refuses.
#[test]
fn where_one_worker_refuses_the_others_take_their_entries_back() {
    let dir = tempfile::tempdir().unwrap();
    let nf = program(dir.path(), "listed.c", "");
    let live = serving(dir.path(), &nf, &["--balance=0"]);
    let file = |name: &str, numbers: std::ops::Range<u32>| {
        let lines = numbers.map(|n| format!("172.16.{}.{},0\n", n / 256, n % 256));
        let path = dir.path().join(name);
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        path.display().to_string()
    };
    // All buckets but one are one worker's, which is as good as full.
    cores(&live, "1");
    let most = file("most.csv", 0..4096);
    let done = live.ask(&["map", "import", "listed", &most]);
    assert_eq!(done["set"], 4096, "{done}");
    let moved = live.ask(&["ctl", "class", "move", "0", "1"]);
    let room = moved["entries"].as_u64().unwrap();
    let before = by_worker(&live);
    assert_eq!(before, [4096 - room, room, 0, 0]);
    let more = file("more.csv", 10_000..14_000);
    let said = refused(&mut live.command(&["map", "import", "listed", &more]), 1);
    assert!(said.contains("entries and no more"), "{said}");
    assert_eq!(by_worker(&live), before);
}

/// A key that no packet has tells no worker.
#[test]
fn a_key_that_tells_no_worker_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct who { __u32 address, kind; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct who);
	__type(value, __u64);
} seen SEC(".maps");
SEC("xdp") int see(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct who who = { .kind = 7 };
	__u64 one = 1;

	if (data + 42 > end || data[12] != 8 || data[13] != 0 || data[14] != 0x45)
		return XDP_DROP;
	__builtin_memcpy(&who.address, data + 26, 4);
	bpf_map_update_elem(&seen, &who, &one, BPF_ANY);
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}
char _license[] SEC("license") = "GPL";
"#;
    let path = dir.path().join("seen.c");
    std::fs::write(&path, source).unwrap();
    let live = serving(dir.path(), path.to_str().unwrap(), &[]);
    let set = |kind: &str| {
        let key = format!("172.16.9.9 u32:{kind}");
        output(&mut live.command(&["map", "set", "seen", &key, "5"]))
    };
    let (done, said) = set("7");
    assert!(done.status.success(), "{said}");
    let (done, said) = set("8");
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("does not tell which worker"), "{said}");
    let start = dir.path().join("start.csv");
    std::fs::write(&start, "172.16.9.9 u32:8,5\n").unwrap();
    let mut run = millrace();
    run.arg("run")
        .arg(&path)
        .args(["--cores", "4", "--strategy", "shard", "--in"]);
    run.arg(hosts(dir.path()))
        .args(["--out", "null:", "--control", "none", "--map"]);
    run.arg(format!("seen={}", start.display()));
    let said = refused(&mut run, 2);
    assert!(said.contains("does not tell which worker"), "{said}");
}
