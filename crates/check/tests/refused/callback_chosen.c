#include "xdp.h"

static long up(__u32 i, void *context)
{
	*(__u64 *)context += i;
	return 0;
}

static long down(__u32 i, void *context)
{
	*(__u64 *)context -= i;
	return 0;
}

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u64 sum = 0;

	bpf_loop(4, ctx->rx_queue_index ? up : down, &sum, 0);
	return sum & 1;
}
