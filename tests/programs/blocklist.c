/* What a map says from outside decides: sources in `blocked` are dropped, all others go back where they
 * came from. `left` and `right` are always changed together; a packet that sees them differ is aborted.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

struct prefix {
	__u32 length;
	__be32 address;
};

struct rule {
	__u32 number;
	__be16 port;
	__u16 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct prefix);
	__type(value, struct rule);
} blocked SEC(".maps");

MAP(seen, PERCPU_ARRAY, 2, __u32, __u64);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} left SEC(".maps"), right SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __be32);
	__type(value, __u64);
} sources SEC(".maps");

const volatile __u32 grace = 0;

static __always_inline void count(__u32 at)
{
	__u64 *n = bpf_map_lookup_elem(&seen, &at);

	if (n)
		++*n;
}

SEC("xdp")
int blocklist(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct prefix key = { .length = 32 };
	__u32 zero = 0, *a, *b;
	__u64 one = 1, *n;

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	a = bpf_map_lookup_elem(&left, &zero);
	b = bpf_map_lookup_elem(&right, &zero);
	if (!a || !b || *a != *b)
		return XDP_ABORTED;
	n = bpf_map_lookup_elem(&sources, &ip->saddr);
	if (n)
		++*n;
	else
		bpf_map_update_elem(&sources, &ip->saddr, &one, BPF_ANY);
	key.address = ip->saddr;
	if (bpf_map_lookup_elem(&blocked, &key)) {
		count(1);
		return grace ? XDP_PASS : XDP_DROP;
	}
	count(0);
	return XDP_TX;
}

char _license[] SEC("license") = "GPL";
