#include "xdp.h"

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u8 *data = BEGIN(ctx);
	__u32 length;

	if (data + 18 > END(ctx))
		return XDP_PASS;
	length = (data[14] & 15) * 4;
	return data[14 + length] ? XDP_DROP : XDP_PASS;
}
