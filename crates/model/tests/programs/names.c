/* Names of labels, each of which says how long it is (RFC 1035, section 3.1): what stands behind one is found by walking. */
#include "kernel.h"

MAP(asked, HASH, 1024, __u32, __u64);
MAP(types, HASH, 1024, __u32, __u64);
MAP(packets, ARRAY, 1, __u32, __u64);

#define NAME 54

/* The place behind the name; none if it does not end. */
static inline __attribute__((always_inline)) __u8 *behind_name(__u8 *p, __u8 *end)
{
	for (__u32 i = 0; i < 127; i++) {
		__u8 length;

		if (p + 1 > end)
			return 0;
		length = *p;
		if (length > 63)
			return length >= 0xc0 ? p + 2 : 0;
		if (p + length + 1 > end)
			return 0;
		p += length + 1;
		if (!length)
			return p;
	}
	return 0;
}

/* One table by the address, one by what stands behind the name. */
SEC("xdp")
int asks(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx), *end = END(ctx), *at;
	__u64 one = 1;
	__u32 key;

	if (p + NAME > end || p[12] != 8 || p[13] != 0)
		return XDP_DROP;
	key = *(__u32 *)(p + 26);
	at = behind_name(p + NAME, end);
	if (!at || at + 4 > end)
		return XDP_DROP;
	if (at[1] == 41)
		update(&asked, &key, &one, BPF_ANY);
	key = *(__u32 *)at;
	update(&types, &key, &one, BPF_ANY);
	return XDP_PASS;
}

/* What is counted is written behind the name, and a byte that may lie there decides. */
SEC("xdp")
int marks(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx), *end = END(ctx), *at;
	__u64 *count;
	__u32 key = 0;

	if (p + NAME + 20 > end)
		return XDP_DROP;
	count = lookup(&packets, &key);
	if (!count)
		return XDP_DROP;
	*count += 1;
	at = behind_name(p + NAME, end);
	if (!at || at + 1 > end)
		return XDP_DROP;
	*at = *count;
	return p[NAME + 10] & 1 ? XDP_DROP : XDP_PASS;
}
