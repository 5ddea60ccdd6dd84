#include "xdp.h"

static long again(__u32 i, void *context)
{
	return bpf_loop(i, again, context, 0) < 0;
}

SEC("xdp") int prog(struct xdp_md *ctx)
{
	return bpf_loop(4, again, 0, 0);
}
