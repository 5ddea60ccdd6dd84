#include "xdp.h"

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u8 *data = BEGIN(ctx);

	if (data + 14 > END(ctx))
		return XDP_PASS;
	if (bpf_xdp_adjust_head(ctx, -4))
		return XDP_DROP;
	data[0] = 2;
	return XDP_TX;
}
