//! Programs of the target `xdp` that the kernel's verifier looks at more closely than a compiler.

use millrace_emit::target::xdp::{Xdp, shard};

use super::shard::steering;
use super::verilog::files;
use super::xdp::{compiled, kernel};
use crate::support::{Bench, facts, nf};

const HEAD: &str = "#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
";

/// Steps of a knock are constants, of which the state says the next: with a table at an address of 8 bytes the compiler makes an
/// `or` of address and index.
#[test]
fn a_table_that_state_indexes_is_a_pointer_in_replays() {
    let bench = Bench::new();
    let text = r#"
struct knock { __u32 step; __u64 time; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct knock);
	__uint(max_entries, 64);
} knocks SEC(".maps");
static const __u16 steps[4] = { 80, 443, 53, 22 };
SEC("xdp") int knocking(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	__u16 *ports = (void *)(ip + 1), port;
	__u64 now = bpf_ktime_get_ns();
	struct knock *knock;
	__u32 key;

	if ((void *)(ports + 2) > end)
		return XDP_PASS;
	key = ip->saddr;
	port = bpf_ntohs(ports[1]);
	knock = bpf_map_lookup_elem(&knocks, &key);
	if (!knock) {
		struct knock begun = { 1, now };

		if (port != steps[0])
			return XDP_DROP;
		bpf_map_update_elem(&knocks, &key, &begun, BPF_ANY);
		return XDP_DROP;
	}
	if (knock->step >= 3)
		return XDP_PASS;
	if (now - knock->time > 1000000000)
		knock->step = 0;
	if (port == steps[knock->step & 3]) {
		knock->step++;
		knock->time = now;
	} else if (knock->step) {
		knock->step = 0;
	}
	return XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"#;
    let program = nf::compile(&bench, "knocking", &format!("{HEAD}{text}"));
    let files = files(&Xdp, &program, 2, 2);
    let object = compiled(&bench, "knocking-replica", &files[1].text);
    // It fails where the kernel refuses it.
    kernel(&bench, "replica", 2, &object, &[]);
}

/// The kernel wants to know where the lock is by the type of the value.
#[test]
fn values_with_locks_have_a_type() {
    let bench = Bench::new();
    let text = r#"
struct bucket { __u64 last; struct bpf_spin_lock lock; __u32 tokens; __u64 more; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, struct bucket);
	__uint(max_entries, 64);
} buckets SEC(".maps");
SEC("xdp") int limit(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	struct bucket *bucket;
	__u32 key, left;

	if ((void *)(ip + 1) > end)
		return XDP_PASS;
	key = ip->saddr;
	bucket = bpf_map_lookup_elem(&buckets, &key);
	if (!bucket) {
		struct bucket full = { .tokens = 5 };

		bpf_map_update_elem(&buckets, &key, &full, BPF_NOEXIST);
		return XDP_PASS;
	}
	bpf_spin_lock(&bucket->lock);
	left = bucket->tokens;
	if (left)
		bucket->tokens--;
	bpf_spin_unlock(&bucket->lock);
	return left ? XDP_PASS : XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"#;
    let program = nf::compile(&bench, "limit", &format!("{HEAD}{text}"));
    let shards = shard::Shards {
        program: &program,
        checked: &facts(&program),
        workers: 2,
        steering: &[steering(&mut 5, false)],
    };
    let worker = &shard::files(&shards).unwrap()[1].text;
    let object = compiled(&bench, "limit-worker", worker);
    kernel(&bench, "plain", 1, &object, &[]);
    let replica = &files(&Xdp, &program, 2, 2)[1].text;
    let object = compiled(&bench, "limit-replica", replica);
    kernel(&bench, "replica", 2, &object, &[]);
}
