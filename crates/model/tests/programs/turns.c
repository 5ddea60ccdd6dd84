/* Loops through state whose turns are too many to be followed one by one. */
#include "kernel.h"

MAP(slots, ARRAY, 64, __u32, __u32);
MAP(known, HASH, 64, __u32, __u32);

/* How many slots hold what the packet says; the last of them is in the packet. */
SEC("xdp")
int counts(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 found = 0;

	if (p + 16 > END(ctx))
		return XDP_DROP;
#pragma nounroll
	for (__u32 i = 0; i < 64; i++) {
		__u32 *slot = lookup(&slots, &i);

		if (!slot)
			break;
		if (*slot == p[0]) {
			found++;
			p[8] = i;
		} else if (*slot > 5) {
			p[9] = *slot;
		}
	}
	return found > 2 ? XDP_TX : XDP_PASS;
}

/* Puts into a slot what the packet says, and moves what is there up until a slot is free. */
SEC("xdp")
int moves(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 carried, first, *before;

	if (p + 16 > END(ctx))
		return XDP_DROP;
	carried = p[0];
	first = p[1] & 15;
	before = lookup(&slots, &first);
	if (!before)
		return XDP_ABORTED;
	p[10] = *before;
#pragma nounroll
	for (__u32 i = first; i < 64; i++) {
		__u32 *slot = lookup(&slots, &i), moved;

		if (!slot || !carried)
			break;
		moved = *slot;
		*slot = carried;
		carried = moved;
	}
	/* The same place again, through the pointer from before. */
	p[11] = *before;
	return *before == p[0] ? XDP_TX : XDP_PASS;
}

/* Forgets those of the first keys that are odd, learns the others, and says whether one of them is there. */
SEC("xdp")
int learns(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 key, one = 1;

	if (p + 16 > END(ctx))
		return XDP_DROP;
	key = p[0] & 7;
	if (!lookup(&known, &key))
		p[12] = 1;
#pragma nounroll
	for (__u32 i = 0; i < 40; i++) {
		__u32 k = i & 7;

		if (i > p[2])
			break;
		if (k & 1)
			delete(&known, &k);
		else if (update(&known, &k, &i, 0))
			break;
	}
	return lookup(&known, &key) ? XDP_TX : XDP_PASS;
}

/* A loop in a loop, and a way out of both. */
SEC("xdp")
int pairs(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 most = 0;

	if (p + 16 > END(ctx))
		return XDP_DROP;
#pragma nounroll
	for (__u32 i = 0; i < 20; i++) {
		__u32 *a = lookup(&slots, &i);

		if (!a)
			break;
#pragma nounroll
		for (__u32 j = 0; j < 20; j++) {
			__u32 *b = lookup(&slots, &j);

			if (!b)
				break;
			if (*a + *b == p[0])
				return XDP_TX;
			if (*b > most)
				most = *b;
		}
		p[13] = most;
	}
	return XDP_PASS;
}

