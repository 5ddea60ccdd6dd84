/* A way out at every step, and no two of them do the same to the packet. */
#include "kernel.h"

SEC("xdp")
int nested(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);

	if (p + 16 > END(ctx))
		return XDP_DROP;
#pragma nounroll
	for (__u32 i = 0; i < 600; i++) {
		if (*(__u16 *)(p + 2) == (__u16)(i * 7 + 1)) {
			p[i & 15] = i;
			p[1] = i >> 4;
			return XDP_TX;
		}
	}
	return XDP_PASS;
}
