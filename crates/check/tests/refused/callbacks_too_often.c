#include "xdp.h"

static long inner(__u32 i, void *context)
{
	__u64 *sum = context;

	*sum += i;
	return 0;
}

static long outer(__u32 i, void *context)
{
	bpf_loop(i, inner, context, 0);
	return 0;
}

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u64 sum = 0;

	bpf_loop(ctx->rx_queue_index, outer, &sum, 0);
	return sum & 1;
}
