/* What the host's routes say. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int routed(struct xdp_md *ctx)
{
	struct bpf_fib_lookup route = { .family = 2, .ifindex = ctx->ingress_ifindex };

	route.ipv4_dst = ctx->rx_queue_index;
	return bpf_fib_lookup(ctx, &route, sizeof(route), 0) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
