/* A choice of choices as deep as the loop is long, held against a number. */
#include "kernel.h"

SEC("xdp")
int chain(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 x = -1;

	if (p + 64 > END(ctx))
		return XDP_DROP;
#pragma nounroll
	for (int i = 0; i < 60000; i++) {
		__u64 m = -((*(__u16 *)(p + 16 + (i & 14)) * (2 * i + 3)) >> 9 & 1);

		/* The compiler must not see that it is all ones or nothing. */
		asm volatile("" : "+r"(m));
		x &= m;
	}
	return x == 5 ? XDP_PASS : XDP_DROP;
}
