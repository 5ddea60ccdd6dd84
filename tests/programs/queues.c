/* A limit for each receive queue: which one a packet comes in by is other on each core. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

MAP(seen, HASH, 64, __u32, __u64);

SEC("xdp")
int queues(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	__u64 one = 1, *packets;

	packets = bpf_map_lookup_elem(&seen, &queue);
	if (!packets) {
		bpf_map_update_elem(&seen, &queue, &one, BPF_ANY);
		return XDP_PASS;
	}
	return ++*packets > 100 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
