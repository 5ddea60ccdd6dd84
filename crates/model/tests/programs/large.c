/* 48,000 instructions: decisions one after another, each of which changes a sum and meets the other way again. */
#include "kernel.h"

MAP(sums, ARRAY, 1, __u32, __u64);

#define STEP(n)                                            \
	if (p[(n) % 61] == ((n) * 7 & 255)) {              \
		sum = sum * 3 ^ p[(n) % 53];               \
		APART(n);                                  \
	}
#define EIGHT(n) STEP(n) STEP(n + 1) STEP(n + 2) STEP(n + 3) STEP(n + 4) STEP(n + 5) STEP(n + 6) STEP(n + 7)
#define X64(n) EIGHT(n) EIGHT(n + 8) EIGHT(n + 16) EIGHT(n + 24) EIGHT(n + 32) EIGHT(n + 40) EIGHT(n + 48) EIGHT(n + 56)
#define X512(n) X64(n) X64(n + 64) X64(n + 128) X64(n + 192) X64(n + 256) X64(n + 320) X64(n + 384) X64(n + 448)
#define X4096(n) X512(n) X512(n + 512) X512(n + 1024) X512(n + 1536) X512(n + 2048) X512(n + 2560) X512(n + 3072) X512(n + 3584)

SEC("xdp")
int large(struct xdp_md *ctx)
{
	volatile __u8 *p = BEGIN(ctx);
	__u32 key = 0;
	__u64 sum, *to;

	if ((__u8 *)p + 64 > END(ctx))
		return XDP_DROP;
	/* A field as it is would keep the ways apart. */
	sum = p[7] * 5;
	X4096(0) X4096(4096)
	to = lookup(&sums, &key);
	if (to)
		*to = sum;
	return XDP_PASS;
}
