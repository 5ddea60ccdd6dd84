/* An XDP program with one of each: a map, both kinds of global, a setting, calls, an atomic. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

const volatile __u32 limit = 100;
const volatile _Bool strict = 1;
const volatile __s16 shift = -2;
static volatile int step = 3;
__u64 total;
int base = 5;
static const int weight[4] = { 1, 2, 3, 4 };

static __attribute__((noinline)) int class_of(struct xdp_md *ctx, int x)
{
	return weight[x & 3] + ctx->rx_queue_index;
}

SEC("xdp")
int count(struct xdp_md *ctx)
{
	__u32 key = ctx->ingress_ifindex;
	__u64 *seen = bpf_map_lookup_elem(&counts, &key);

	if (seen) {
		__sync_fetch_and_add(seen, 1);
		if (*seen > limit)
			return XDP_DROP;
	}
	total += base + step;
	return class_of(ctx, key) ? XDP_TX : XDP_PASS;
}

SEC("other/name")
int second(struct xdp_md *ctx)
{
	return strict ? XDP_PASS : XDP_DROP;
}

__attribute__((noinline)) int unreached(int x)
{
	return x + shift;
}

char _license[] SEC("license") = "GPL";
