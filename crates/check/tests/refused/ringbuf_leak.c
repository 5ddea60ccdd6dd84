#include "xdp.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u64 *event = bpf_ringbuf_reserve(&events, 8, 0);

	if (!event)
		return XDP_PASS;
	*event = 1;
	if (ctx->rx_queue_index == 3)
		return XDP_DROP;
	bpf_ringbuf_submit(event, 0);
	return XDP_PASS;
}
