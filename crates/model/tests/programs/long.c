/* A number that is multiplied once a byte, for as many bytes as there are, and asked for each time. */
#include "kernel.h"

SEC("xdp")
int longer(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx), *end = END(ctx);
	__u64 hash = 14695981039346656037ull;

	for (int i = 0; i < 4000; i++) {
		if (p + i + 1 > end)
			break;
		hash = (hash ^ p[i]) * 1099511628211ull;
		if ((hash >> 11) % 1021 == 7)
			hash ^= hash >> 3;
	}
	return hash % 3;
}
