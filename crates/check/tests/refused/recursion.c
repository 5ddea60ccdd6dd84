#include "xdp.h"

static __attribute__((noinline)) int depth(__u32 n, volatile __u32 *seen)
{
	*seen = n;
	if (n & 1)
		return depth(n >> 1, seen) + depth(n >> 2, seen);
	return 1;
}

SEC("xdp") int prog(struct xdp_md *ctx)
{
	volatile __u32 seen = 0;

	return depth(ctx->rx_queue_index, &seen);
}
