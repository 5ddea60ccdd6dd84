/* Calls of bpf_fib_lookup and bpf_check_mtu whose arguments stand in the packet, and whose results are
 * written back to it, so that two implementations can be compared byte by byte. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct lookup {
	__u8 ethernet[14];
	__u8 pad[2];
	__u32 size;
	__u32 flags;
	__s64 result;
	__u64 params[8];
};

SEC("xdp")
int lookup(struct xdp_md *ctx)
{
	struct lookup *p = (void *)(long)ctx->data;
	__u64 params[8];
	__u32 size;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	for (int i = 0; i < 8; i++)
		params[i] = p->params[i];
	size = (p->size & 63) + 1;
	p->result = bpf_fib_lookup(ctx, (void *)params, size, p->flags);
	for (int i = 0; i < 8; i++)
		p->params[i] = params[i];
	return XDP_PASS;
}

struct fits {
	__u8 ethernet[14];
	__u8 pad[2];
	__u32 ifindex;
	__u32 length;
	__s32 difference;
	__u32 spare;
	__u64 flags;
	__s64 result;
};

SEC("xdp")
int fits(struct xdp_md *ctx)
{
	struct fits *p = (void *)(long)ctx->data;
	__u32 length;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	length = p->length;
	p->result = bpf_check_mtu(ctx, p->ifindex, &length, p->difference, p->flags);
	p->length = length;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
