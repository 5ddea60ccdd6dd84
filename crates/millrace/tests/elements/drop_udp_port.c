/* Drops UDP to port 53, wherever the IP header ends. */
#include "filter.h"

SEC("xdp")
int drop_udp_port(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = ipv4(ctx);
	struct udphdr *udp;

	if (!ip || ip->protocol != IPPROTO_UDP)
		return onward(ctx);
	udp = (void *)ip + ip->ihl * 4;
	if ((void *)(udp + 1) > end)
		return XDP_DROP;
	return udp->dest == bpf_htons(53) ? XDP_DROP : onward(ctx);
}
