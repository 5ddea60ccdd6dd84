#include "xdp.h"

struct scan {
	struct xdp_md *ctx;
	__u8 *data;
	__u8 *end;
	__u64 sum;
};

/* The second round looks at the packet of before the first round's call. */
static long step(__u32 i, void *context)
{
	struct scan *scan = context;

	if (scan->data + 1 > scan->end)
		return 1;
	scan->sum += *scan->data;
	return bpf_xdp_adjust_head(scan->ctx, 1) != 0;
}

SEC("xdp") int prog(struct xdp_md *ctx)
{
	struct scan scan = { ctx, BEGIN(ctx), END(ctx), 0 };

	bpf_loop(2, step, &scan, 0);
	return scan.sum & 1;
}
