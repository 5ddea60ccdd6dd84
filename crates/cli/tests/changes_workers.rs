//! Chains of runs on several workers that are changed while packets come: no packet of a flow is lost, doubled, overtaken, or comes to a worker
//! that has not its state.

use crate::common;
use crate::common::live;
use crate::common::stream;

use std::path::Path;

use common::{capture, millrace, output, refused, udp};
use live::Live;
use millrace_turns::of_today;
use serde_json::Value;
use stream::elements;

/// Hosts that send, and packets of each before its numbers begin again: those of a capture, which is looped.
const HOSTS: u32 = 64;
const ROUND: u32 = 16;

/// A program that drops packets of a host whose numbers do not follow one another: one that was lost, came twice or too early, or whose host's
/// last number is not known here. `more` stands where a packet goes on.
fn program(folder: &Path, name: &str, (entries, at): (u32, u32), more: &str) -> String {
    let source = format!(
        r#"#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
struct {{
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, {entries});
	__type(key, __u32);
	__type(value, __u32);
}} last SEC(".maps");
SEC("xdp") int order(struct xdp_md *ctx)
{{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 key, number, *n;

	if (data + 60 > end || data[12] != 8 || data[13] != 0 || data[14] != 0x45)
		return XDP_DROP;
	__builtin_memcpy(&key, data + {at}, 4);
	__builtin_memcpy(&number, data + 42, 4);
	number = bpf_ntohl(number);
	n = bpf_map_lookup_elem(&last, &key);
	if (n ? number != *n : number != 0)
		return XDP_DROP;
	number = (number + 1) % {ROUND};
	if (n)
		*n = number;
	else
		bpf_map_update_elem(&last, &key, &number, BPF_ANY);
	{more}
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}}
char _license[] SEC("license") = "GPL";
"#
    );
    let path = folder.join(name);
    std::fs::write(&path, source).unwrap();
    path.display().to_string()
}

/// A program that looks at packets, drops some that do not come, and sends them on after `more`.
fn other(folder: &Path, name: &str, more: &str) -> String {
    let source = format!(
        r#"#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp") int other(struct xdp_md *ctx)
{{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + 34 > end || data[22] == 77)
		return XDP_DROP;
	{more}
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}}
char _license[] SEC("license") = "GPL";
"#
    );
    let path = folder.join(name);
    std::fs::write(&path, source).unwrap();
    path.display().to_string()
}

fn order(folder: &Path) -> String {
    program(folder, "order.c", (4096, 26), "")
}

/// A run of these over the software NIC, which waits where workers are slow.
fn serving(folder: &Path, functions: &[&str], cores: u32, words: &[&str]) -> Live {
    let file = folder.join("hosts.pcap");
    let packets = (0..ROUND).flat_map(|number| (0..HOSTS).map(move |host| (number, host)));
    let packets = packets.map(|(number, host)| {
        // Addresses that any key tells apart.
        let far = |by: u32| (host.wrapping_mul(by) >> 3) as u8;
        let from = [10, far(2_654_435_761), far(40_503), host as u8];
        let mut frame = udp(
            (from, 7),
            ([10, far(97), far(2_246_822_519), host as u8], 9),
        );
        frame[42..46].copy_from_slice(&number.to_be_bytes());
        (1_000_000 + u64::from(number * HOSTS + host), frame)
    });
    capture(&file, &packets.collect::<Vec<_>>());
    // Fewer buffers than a ring between two workers has places, for a third of a second: others have the processors now and then.
    let port = format!(
        "vnic:{}?measure=off&depth=256&txdepth=256&rate=1500",
        file.display()
    );
    let cores = cores.to_string();
    let own = format!("--ports {port} --cores {cores} --packets 3000000000 --seconds 120");
    let own = common::words(&own);
    Live::of(folder, functions, &[&own[..], words].concat())
}

/// Packets that all workers have had.
fn read(live: &Live) -> u64 {
    let stats = live.ask(&["ctl", "stats"]);
    let accounts = stats["accounts"].as_array().unwrap();
    accounts.iter().map(|a| a["read"].as_u64().unwrap()).sum()
}

/// Packets that come between two changes: some of each host, so that each worker has had some.
const BETWEEN: u64 = 4 * HOSTS as u64;

/// Waits until all workers have had packets again.
fn come(live: &Live, packets: u64) {
    let before = read(live);
    let began = std::time::Instant::now();
    while read(live) < before + packets {
        assert!(began.elapsed() < live::LONG, "packets stand still");
        common::pause();
    }
}

/// Asks for a change once packets have come again.
fn changed(live: &Live, words: &[&str]) -> Value {
    come(live, BETWEEN);
    live.ask(&[&["ctl", "chain"], words].concat())
}

/// Nothing was lost, doubled or overtaken, and each packet has one fate.
fn ended(live: Live, cores: u32) -> Value {
    come(&live, BETWEEN);
    live.ask(&["ctl", "drain"]);
    let (account, status) = live.end();
    assert_eq!(status, 0, "{account}");
    let reasons = account["reasons"].as_object().unwrap();
    assert!(reasons.keys().all(|why| why == "tx_full"), "{account}");
    let of = |name: &str| account[name].as_u64().unwrap();
    let full = reasons.get("tx_full").map_or(0, |n| n.as_u64().unwrap());
    assert_eq!(of("dropped"), full, "{account}");
    assert_eq!(of("read"), of("forwarded") + of("dropped"), "{account}");
    let missed = account["queues"].as_array().unwrap().iter();
    assert_eq!(
        missed.map(|q| q["missed"].as_u64().unwrap()).sum::<u64>(),
        0
    );
    let workers = account["workers"].as_array().unwrap();
    assert_eq!(workers.len() as u32, cores);
    assert!(
        workers.iter().all(|w| w["packets"].as_u64() > Some(0)),
        "{account}"
    );
    account
}

/// Packets of all elements of a name, those that have left too.
fn packets(account: &Value, name: &str) -> u64 {
    let stages = account["stages"].as_array().unwrap().iter();
    let own = stages.filter(|s| s["name"] == name);
    own.map(|s| s["packets"].as_u64().unwrap()).sum()
}

#[test]
fn a_chain_whose_state_is_divided_is_changed_by_all_workers_at_one_moment() {
    for cores in of_today("numbers of workers with parts", [2, 4], 2) {
        let dir = tempfile::tempdir().unwrap();
        let order = order(dir.path());
        let live = serving(dir.path(), &[&order], cores, &["--strategy", "shard"]);
        let guard = other(dir.path(), "guard.c", "");
        let words = ["attach", &guard, "--name", "front", "--before", "order"];
        let done = changed(&live, &words);
        assert_eq!(elements(&done), ["front", "order"]);
        let done = changed(&live, &["replace", "order", &order]);
        // Entries of all workers.
        let kept = &done["kept"][0];
        assert_eq!(
            (&kept["object"], &kept["entries"]),
            (&"last".into(), &HOSTS.into()),
            "{done}"
        );
        changed(&live, &["reorder", "order", "front"]);
        let done = changed(&live, &["attach", "nop", "--name", "back"]);
        assert_eq!(elements(&done), ["order", "front", "back"]);
        // A table with more room, of another size for each worker.
        let larger = program(dir.path(), "larger.c", (70_000, 26), "");
        let done = changed(&live, &["replace", "order", &larger]);
        assert_eq!(done["kept"][0]["entries"], HOSTS, "{done}");
        changed(&live, &["detach", "front"]);
        let done = changed(&live, &["detach", "back"]);
        assert_eq!(elements(&done), ["order"]);
        let account = ended(live, cores);
        assert_eq!(
            packets(&account, "order"),
            account["read"].as_u64().unwrap()
        );
        println!(
            "{cores} workers: {} packets through 7 changes",
            account["read"]
        );
    }
}

#[test]
fn a_row_whose_state_is_under_a_lock_is_changed_by_all_workers_at_one_moment() {
    for cores in of_today("numbers of workers under a lock", [4, 2], 2) {
        let dir = tempfile::tempdir().unwrap();
        let order = order(dir.path());
        let words = ["--link", "no"];
        let live = serving(dir.path(), &["nop", &order], cores, &words);
        let done = changed(
            &live,
            &["attach", "nop", "--name", "more", "--before", "nop"],
        );
        assert_eq!(elements(&done), ["more", "nop", "order"]);
        let done = changed(&live, &["replace", "order", &order]);
        // There is one table for all workers.
        assert_eq!(done["kept"][0]["entries"], HOSTS, "{done}");
        changed(&live, &["reorder", "order", "more", "nop"]);
        changed(&live, &["detach", "more"]);
        let done = changed(&live, &["detach", "nop"]);
        assert_eq!(elements(&done), ["order"]);
        let account = ended(live, cores);
        assert_eq!(
            packets(&account, "order"),
            account["read"].as_u64().unwrap()
        );
        assert!(packets(&account, "more") > 0);
    }
}

#[test]
fn what_cannot_run_as_the_others_is_refused_and_the_chain_runs_on() {
    let dir = tempfile::tempdir().unwrap();
    let own = order(dir.path());
    let live = serving(dir.path(), &[&own], 2, &["--strategy", "shard"]);
    let file = |name: &str, at, more: &str| program(dir.path(), name, (4096, at), more);
    // By destinations, by all packets, and of packets that are not as they arrived.
    let others = file("others.c", 30, "");
    let whole = file(
        "whole.c",
        26,
        "static __u64 all; if (++all % 1000 == 7) return XDP_DROP;",
    );
    let alters = other(dir.path(), "alters.c", "data[22]--;");
    let back = other(dir.path(), "back.c", "if (data[22] == 1) return XDP_TX;");
    for (words, what) in [
        (
            &["attach", &others][..],
            "by other fields, or under another key",
        ),
        (
            &["replace", "order", &others],
            "by other fields, or under another key",
        ),
        (&["attach", &whole], "every packet touches the same place"),
        (
            &["replace", "order", &whole],
            "every packet touches the same place",
        ),
        (&["attach", &alters], "alters.c:8: it changes packets"),
        (&["attach", &back], "send packets back"),
        (&["attach", "guest:cat"], "packet class"),
        (&["detach", "order"], "the only element"),
    ] {
        come(&live, BETWEEN);
        let said = refused(&mut live.command(&[&["ctl", "chain"], words].concat()), 1);
        assert!(said.contains(what), "{words:?}: {said}");
        let shown = live.ask(&["ctl", "chain", "show"]);
        assert_eq!(shown["elements"].as_array().unwrap().len(), 1, "{shown}");
    }
    // All state or none: the new one has less room than one worker has entries.
    let small = program(dir.path(), "small.c", (4, 26), "");
    let said = refused(
        &mut live.command(&["ctl", "chain", "replace", "order", &small]),
        1,
    );
    assert!(said.contains("state cannot be kept"), "{said}");
    ended(live, 2);
}

/// Elements of an array are on all workers; of one that packets write the owner's counts, whatever it held at the start, and behind a change, too.
#[test]
fn an_element_that_held_something_at_the_start_is_seen_as_its_owner_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} seen SEC(".maps");
SEC("xdp") int see(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 key, number, *n;

	if (data + 60 > end || data[12] != 8 || data[13] != 0 || data[14] != 0x45)
		return XDP_DROP;
	key = data[29];
	__builtin_memcpy(&number, data + 42, 4);
	n = bpf_map_lookup_elem(&seen, &key);
	if (!n)
		return XDP_DROP;
	*n = *n == 5 ? 1000 : 1000 + bpf_ntohl(number);
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}
char _license[] SEC("license") = "GPL";
"#;
    let path = dir.path().join("see.c");
    std::fs::write(&path, source).unwrap();
    let start: String = (0..HOSTS).map(|host| format!("{host},5\n")).collect();
    std::fs::write(dir.path().join("start.csv"), start).unwrap();
    let map = format!("seen={}", dir.path().join("start.csv").display());
    let see = path.display().to_string();
    let live = serving(
        dir.path(),
        &[&see],
        4,
        &["--strategy", "shard", "--map", &map],
    );
    for replaced in [false, true] {
        // Each host's numbers once: whatever they held at the start is seen, and what follows it.
        come(&live, u64::from(ROUND * HOSTS));
        for host in 0..HOSTS {
            let found = live.ask(&["map", "get", "seen", &host.to_string()]);
            assert!(found["value"].as_u64() >= Some(1000), "{host}: {found}");
        }
        if !replaced {
            changed(&live, &["replace", "see", &see]);
        }
    }
    ended(live, 4);
}

/// The next of numbers that look random (Marsaglia, Xorshift RNGs, 2003).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 33
}

/// Buckets move, the number of workers changes, the state is looked at and the chain changes, while a timer draws keys. `MILLRACE_LONG` has it go on for
/// longer.
#[test]
fn a_timer_changes_the_key_while_everything_else_changes() {
    let dir = tempfile::tempdir().unwrap();
    let order = order(dir.path());
    let words = common::words("--strategy shard --balance=0 --rotate-every 0.1");
    let live = serving(dir.path(), &[&order], 3, &words);
    let keys = if std::env::var_os("MILLRACE_LONG").is_some() {
        200
    } else {
        8
    };
    let mut random = 11;
    let (mut turns, began) = (0, std::time::Instant::now());
    let moved = loop {
        let (bucket, to) = (next(&mut random) % 128, next(&mut random) % 3);
        let (bucket, to, first) = (bucket.to_string(), to.to_string(), (to + 1).to_string());
        let words = match turns % 6 {
            1 => vec!["ctl", "cores", &first],
            2 => vec!["map", "export", "last"],
            3 => vec!["ctl", "rotate"],
            _ => vec!["ctl", "class", "move", &bucket, &to],
        };
        let (done, said) = output(&mut live.command(&words));
        // What meets another move, or the timer.
        let met = ["is being moved", "was asked for", "stays where it was"];
        assert!(
            done.status.success() || met.iter().any(|why| said.contains(why)),
            "{words:?}: {said}"
        );
        if turns == 4 {
            changed(
                &live,
                &["attach", "nop", "--name", "front", "--before", "order"],
            );
        }
        turns += 1;
        let shown = live.ask(&["ctl", "class", "show"]);
        if shown["moved"]["keys"].as_u64() >= Some(keys) && turns > 12 {
            break shown["moved"].clone();
        }
        assert!(began.elapsed() < 5 * live::LONG, "{shown}");
    };
    assert_eq!(moved["lost"], 0, "{moved}");
    assert!(moved["moves"].as_u64() > Some(0), "{moved}");
    // The timer goes on.
    while !output(&mut live.command(&["ctl", "cores", "3"]))
        .0
        .status
        .success()
    {}
    let account = ended(live, 3);
    println!("{} packets; {moved}", account["read"]);

    let mut nat = millrace();
    nat.args(common::words(
        "run nat --ports vnic:captures/talk.pcap?split=lan=10.0.0.0/24",
    ));
    nat.args(common::words(
        "--cores 2 --strategy shard --balance --rotate-every 1",
    ));
    let said = refused(&mut nat, 1);
    assert!(said.contains("do not come home under another"), "{said}");
}
