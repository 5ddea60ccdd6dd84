/* Ways that meet again: which of them are one path from there on. */
#include "kernel.h"

MAP(sums, ARRAY, 1, __u32, __u32);

/* Keeps the compiler from making one computation of two ways. */
#define KEEP(x) asm volatile("" : "+r"(x))
#define KEEP_AS(x, name) asm volatile("# " name : "+r"(x))

/* An exception of a computed number. */
SEC("xdp")
int excepted(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 sum;

	if (p + 16 > END(ctx))
		return XDP_DROP;
	sum = p[0] * 3 + p[1];
	if (sum > 20) {
		sum = 20;
		KEEP(sum);
	}
	p[8] = sum;
	return XDP_PASS;
}

/* Different numbers written to the same bytes. */
SEC("xdp")
int written(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 zero = 0, *sum = lookup(&sums, &zero), x;

	if (p + 16 > END(ctx) || !sum)
		return XDP_DROP;
	x = p[1];
	if (p[0] > 3) {
		x = x * 5;
		KEEP(x);
		p[8] = x;
	} else {
		x = x + 7;
		KEEP(x);
		p[8] = x;
	}
	*sum = x;
	return p[8] > 30 ? XDP_TX : XDP_PASS;
}

/* Different bytes, and a choice of two constants. */
SEC("xdp")
int apart(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 x;

	if (p + 16 > END(ctx))
		return XDP_DROP;
	x = p[1] * 3;
	if (p[0] > 3)
		p[8] = x;
	else
		p[9] = x;
	if (p[2] > 3) {
		x = 1;
		KEEP(x);
	} else {
		x = 2;
		KEEP(x);
	}
	p[10] = x;
	return XDP_PASS;
}

/* Steps over parts of three kinds, each as long as it says: the ways to an offset are many, and at each another byte
 * says what follows. */
SEC("xdp")
int crowd(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx), *end = END(ctx);
	__u32 kind;

	if (p + 2 > end)
		return XDP_DROP;
#pragma nounroll
	for (int i = 0; i < 10; i++) {
		if (p + 2 > end)
			return XDP_DROP;
		kind = p[0] & 3;
		if (kind == 1) {
			p += (p[1] & 3) + 1;
			KEEP_AS(p, "one");
		} else if (kind == 2) {
			p += ((p[1] & 3) + 1) * 2;
			KEEP_AS(p, "two");
		} else if (kind == 3) {
			p += 2;
			KEEP_AS(p, "three");
		} else {
			return XDP_TX;
		}
	}
	return XDP_PASS;
}
