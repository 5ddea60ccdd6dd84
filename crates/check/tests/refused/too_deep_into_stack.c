#include "xdp.h"

SEC("xdp") int prog(struct xdp_md *ctx)
{
	volatile __u8 buffer[16] = {};

	buffer[ctx->rx_queue_index & 31] = 1;
	return buffer[0];
}
