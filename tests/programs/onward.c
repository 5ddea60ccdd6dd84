/* Tail calls and redirects by the packet's own bytes, for comparison with the kernel: element 1 of the
 * array calls itself until the limit, element 2 redirects, 0 and 3 are empty.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

int again(struct xdp_md *ctx);
int send(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} next SEC(".maps") = {
	.values = { [1] = (void *)&again, [2] = (void *)&send },
};

MAP(ports, DEVMAP, 4, __u32, __u32);
MAP(counts, ARRAY, 8, __u32, __u64);

static __always_inline void count(__u32 at)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &at);

	if (n)
		++*n;
}

static __always_inline __u32 byte(struct xdp_md *ctx, int at)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;

	return data + at + 1 > end ? 0 : data[at];
}

SEC("xdp")
int first(struct xdp_md *ctx)
{
	count(0);
	bpf_tail_call(ctx, &next, byte(ctx, 0) % 6);
	count(1);
	return XDP_DROP;
}

SEC("xdp")
int again(struct xdp_md *ctx)
{
	count(2);
	bpf_tail_call(ctx, &next, byte(ctx, 1) % 4);
	count(3);
	return XDP_PASS;
}

SEC("xdp")
int send(struct xdp_md *ctx)
{
	__u32 index = byte(ctx, 2) % 6;
	__u32 flags = byte(ctx, 3);

	count(4);
	if (bpf_map_lookup_elem(&ports, &index))
		count(5);
	return bpf_redirect_map(&ports, index, flags);
}
