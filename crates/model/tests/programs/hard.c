/* Asks for the factors of a number, which no solver finds in the time that it has. */
#include "kernel.h"

MAP(hits, ARRAY, 8, __u32, __u64);

SEC("xdp")
int hard(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 key = 0;
	__u64 a, b, *value;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	a = *(__u32 *)p;
	b = *(__u32 *)(p + 4);
	/* The product of the primes 2654435761 and 3418756183. */
	if (a < 2 || b < 2 || a > b || a * b != 9074868670295060263ull)
		return XDP_PASS;
	value = lookup(&hits, &key);
	if (value)
		__sync_fetch_and_add(value, 1);
	return XDP_TX;
}
