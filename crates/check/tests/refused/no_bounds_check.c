#include "xdp.h"

SEC("xdp") int prog(struct xdp_md *ctx)
{
	return BEGIN(ctx)[23] == 6 ? XDP_DROP : XDP_PASS;
}
