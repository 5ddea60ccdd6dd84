#include "xdp.h"

const __u32 limit = 10;

SEC("xdp") int prog(struct xdp_md *ctx)
{
	volatile __u32 *l = (volatile __u32 *)&limit;

	*l = 11;
	return XDP_PASS;
}
