/* A limit for each receive queue: which one a packet comes in by is other on each core. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

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
