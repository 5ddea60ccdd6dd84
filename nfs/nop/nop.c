/* Every packet goes out of the other of two ports: what the machinery around a function costs. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int nop(struct xdp_md *ctx)
{
	/* Interfaces 1 and 2 are ports 0 and 1. */
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
