#include "xdp.h"

struct sums {
	__u32 of[8];
};

static long add(__u32 i, void *context)
{
	struct sums *sums = context;

	sums->of[i] += i;
	return 0;
}

SEC("xdp") int prog(struct xdp_md *ctx)
{
	struct sums sums = {};

	bpf_loop(9, add, &sums, 0);
	return sums.of[ctx->rx_queue_index & 7];
}
