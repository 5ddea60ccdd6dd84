#include "xdp.h"

static volatile __u32 stop;

SEC("xdp") int prog(struct xdp_md *ctx)
{
	while (!stop)
		;
	return XDP_PASS;
}
