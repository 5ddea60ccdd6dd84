/* Sums of shared sums, and conjunctions of shared conjunctions: few expressions, taken apart 2^50 terms. */
#include "kernel.h"

#define OPAQUE(x) asm volatile("" : "+r"(x))

SEC("xdp")
int shared(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 sum = 0, all;

	if (p + 128 > END(ctx))
		return XDP_DROP;
	all = p[0] & 1;
#pragma unroll
	for (int i = 0; i < 16; i++)
		sum += p[i] * p[i + 1];
#pragma unroll
	for (int i = 1; i < 50; i++) {
		__u64 more = sum + p[i + 20] * 3 * p[i + 21];
		__u64 a = all & p[i] >> 1, b = all & p[i] >> 2;

		OPAQUE(sum);
		OPAQUE(more);
		OPAQUE(a);
		OPAQUE(b);
		sum += more;
		all = a & b;
	}
	if (sum == 77)
		return XDP_TX;
	return all ? XDP_PASS : XDP_DROP;
}
