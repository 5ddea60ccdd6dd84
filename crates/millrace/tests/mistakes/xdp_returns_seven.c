#include <linux/bpf.h>

__attribute__((section("xdp"), used)) int pass(struct xdp_md *ctx)
{
	return ctx->data_end == ctx->data ? XDP_DROP : 7;
}

char _license[] __attribute__((section("license"), used)) = "GPL";
//> xdp_returns_seven.c:5: warning: 7 is returned here, which is no verdict: the packet is aborted
//> return ctx->data_end == ctx->data ? XDP_DROP : 7;
//> help: return XDP_PASS, XDP_DROP, XDP_TX, XDP_REDIRECT or XDP_ABORTED
