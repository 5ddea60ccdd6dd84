#include "xdp.h"

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u32 sum = 0;

	for (__u32 i = 0; i < ctx->rx_queue_index; i++) {
		__asm__ volatile("" : "+r"(sum));
		sum += i;
	}
	return sum ? XDP_PASS : XDP_DROP;
}
