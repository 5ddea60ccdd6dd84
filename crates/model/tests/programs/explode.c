/* 2^40 ways through, no two of which do the same to the packet and to the table. */
#include "kernel.h"

MAP(table, HASH, 8, __u32, __u64);

#define STEP(i)                        \
	if (p[i] & 1) {                \
		p[64 + (i)] = i;       \
		APART(i);              \
	}
#define FIVE(i) STEP(i) STEP(i + 1) STEP(i + 2) STEP(i + 3) STEP(i + 4)

SEC("xdp")
int explode(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 one = 1;
	__u32 key = 0;

	if (p + 128 > END(ctx))
		return XDP_DROP;
	FIVE(0) FIVE(5) FIVE(10) FIVE(15) FIVE(20) FIVE(25) FIVE(30) FIVE(35)
	key = p[70];
	update(&table, &key, &one, BPF_ANY);
	return XDP_PASS;
}
