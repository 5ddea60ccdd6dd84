/* Borders that are moved: how much room there is before and behind the packet decides. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct noted {
	__u32 byte;
};

SEC("xdp")
int borders(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(struct noted)))
		return XDP_PASS;
	if (bpf_xdp_adjust_tail(ctx, 8))
		return XDP_ABORTED;
	struct noted *noted = (void *)(long)ctx->data_meta;
	__u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if ((void *)(noted + 1) > (void *)p || p + 22 > end)
		return XDP_DROP;
	noted->byte = p[3];
	return p[1] > 5 ? XDP_TX : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
