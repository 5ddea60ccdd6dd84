#include "xdp.h"

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u8 *data = BEGIN(ctx);

	if (data + 34 > END(ctx))
		return XDP_PASS;
	return data[34] ? XDP_DROP : XDP_PASS;
}
