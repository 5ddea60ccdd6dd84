#include "xdp.h"

SEC("xdp") int prog(struct xdp_md *ctx)
{
	ctx->rx_queue_index = 0;
	return XDP_PASS;
}
