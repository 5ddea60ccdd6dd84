/* A packet that grows in front, by a constant or by what it says: its first bytes have places below zero. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int grown(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (p + 16 > end)
		return XDP_DROP;
	int by = p[1] & 1 ? 20 : (p[0] & 63) - 8;
	if (bpf_xdp_adjust_head(ctx, -by))
		return XDP_DROP;
	p = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (p + 14 > end)
		return XDP_ABORTED;
	p[0] = 7;
	if (p + 24 > end)
		return XDP_PASS;
	p[23] = 7;
	return XDP_TX;
}

char _license[] SEC("license") = "GPL";
