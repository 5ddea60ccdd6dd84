/* Tail calls in functions, for comparison with the kernel: the function is left, its caller goes on with
 * the other program's verdict, which may make tail calls of its own, in functions of its own.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

int again(struct xdp_md *ctx);
int shorten(struct xdp_md *ctx);
int nothing(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 6);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} next SEC(".maps") = {
	.values = { [1] = (void *)&again, [2] = (void *)&shorten, [3] = (void *)&nothing },
};

MAP(counts, ARRAY, 16, __u32, __u64);

static __always_inline void count(__u32 at)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &at);

	if (n)
		++*n;
}

static __noinline int go(struct xdp_md *ctx, __u32 at)
{
	volatile int fallen = 7;

	bpf_tail_call(ctx, &next, at);
	count(8);
	return fallen;
}

static __always_inline __u32 byte(struct xdp_md *ctx, int at)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	return data + at + 1 <= end ? data[at] : 0;
}

SEC("xdp") int first(struct xdp_md *ctx)
{
	int verdict = go(ctx, byte(ctx, 0) & 7);

	count(verdict & 7);
	if (verdict == 7)
		return XDP_DROP;
	/* The packet is another one now, perhaps. */
	if (byte(ctx, 1) & 1)
		verdict = go(ctx, byte(ctx, 1) & 3) == XDP_TX ? XDP_PASS : XDP_TX;
	return verdict;
}

SEC("xdp") int again(struct xdp_md *ctx)
{
	count(9);
	return go(ctx, byte(ctx, 2) & 3 ? 1 : 2) == 7 ? XDP_PASS : XDP_TX;
}

SEC("xdp") int shorten(struct xdp_md *ctx)
{
	count(10);
	return bpf_xdp_adjust_head(ctx, 3) ? XDP_ABORTED : XDP_PASS;
}

SEC("xdp") int nothing(struct xdp_md *ctx)
{
	(void)ctx;
	count(11);
	return XDP_ABORTED;
}

char _license[] SEC("license") = "GPL";
