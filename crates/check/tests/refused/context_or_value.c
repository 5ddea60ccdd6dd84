/* Where the map has no entry, the default is a field of the context: a compiler may choose the address
 * and load once. */
#include "xdp.h"

struct start {
	__u32 queue;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct start);
} starts SEC(".maps");

SEC("xdp")
int context_or_value(struct xdp_md *ctx)
{
	__u32 key = ctx->ingress_ifindex;
	struct start *known = bpf_map_lookup_elem(&starts, &key);
	__u32 *from = known ? &known->queue : &ctx->rx_queue_index;

	return *from ? XDP_PASS : XDP_DROP;
}
