//! What the plan says may differ is counted by a run where it does, and not where it does not.

use crate::common;

use std::path::Path;

use common::{capture, millrace, success, udp};
use serde_json::Value;

const PACKETS: u64 = 2_000;

/// A record of each packet in a ring of 4 KiB, and per CPU how many there were and when the last one came.
const NOTES: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct seen { __u64 packets, last; };

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} notes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, struct seen);
} seen SEC(".maps");

SEC("xdp")
int note(struct xdp_md *ctx)
{
	char record[SIZE] = {};
	__u32 zero = 0;
	struct seen *s = bpf_map_lookup_elem(&seen, &zero);

	if (s) {
		s->packets++;
		LAST;
	}
	bpf_ringbuf_output(&notes, record, sizeof(record), 0);
	return XDP_TX;
}

char _license[] SEC("license") = "MIT";
"#;

/// The account of a run of it with these records and this in place of `LAST`.
fn run(dir: &Path, size: &str, last: &str, cores: &str) -> Value {
    let source = dir.join("notes.c");
    std::fs::write(&source, NOTES.replace("SIZE", size).replace("LAST", last)).unwrap();
    let input = dir.join("in.pcap");
    let packets = (0..PACKETS).map(|n| {
        let from = ([10, 0, (n >> 8) as u8, n as u8], 1024 + n as u16);
        (1_000_000_000 + n * 1000, udp(from, ([8, 8, 8, 8], 53)))
    });
    capture(&input, &packets.collect::<Vec<_>>());
    let account = success(
        millrace()
            .args(["run", "--control", "none", "--cores", cores])
            .args([&source, Path::new("--in"), &input])
            .args([Path::new("--out"), &dir.join("out.pcap")]),
    );
    assert_eq!(account["forwarded"], PACKETS);
    account
}

const STORED: &str = "s->last = bpf_ktime_get_ns()";
/// Read again, but to go on with: what each core has is no scratch of a packet.
const LARGEST: &str = "__u64 now = bpf_ktime_get_ns(); s->last = now > s->last ? now : s->last";
/// Read again by the packet that stored it.
const SCRATCH: &str = "s->last = bpf_ktime_get_ns(); record[0] = *(volatile __u64 *)&s->last & 1";

#[test]
fn records_that_find_the_ring_of_their_core_full_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    // Of a burst eight records fit, each of 480 bytes and a header of 8.
    let account = run(dir.path(), "480", "", "4");
    let kept = account["records"]["notes"].as_u64().unwrap();
    assert!(kept > 0 && kept < PACKETS, "{account}");
    assert_eq!(
        account["relaxations"]["capacity"],
        PACKETS - kept,
        "{account}"
    );
    // On one core nothing is otherwise, and small ones have room everywhere.
    let account = run(dir.path(), "480", "", "1");
    assert!(account["records"]["notes"].as_u64() < Some(PACKETS));
    assert_eq!(account.get("relaxations"), None);
    let account = run(dir.path(), "8", "", "4");
    assert_eq!(account["records"]["notes"], PACKETS);
    assert_eq!(account.get("relaxations"), None);
}

#[test]
fn entries_that_show_what_one_core_stored_last_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    for last in [STORED, LARGEST] {
        let account = run(dir.path(), "8", last, "4");
        // Elements that no packet touched are alike.
        assert_eq!(account["relaxations"]["latest"], 1, "{last}: {account}");
    }
    for (last, cores) in [(STORED, "1"), (LARGEST, "1"), (SCRATCH, "4"), ("", "4")] {
        let account = run(dir.path(), "8", last, cores);
        assert_eq!(account.get("relaxations"), None, "{last} on {cores}");
    }
}
