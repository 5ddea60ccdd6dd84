/* Sends DNS to port 5353 instead of 53, without a sum, as UDP over IPv4 may. */
#include "filter.h"

SEC("xdp")
int port_redirect(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = ipv4(ctx);
	struct udphdr *udp;

	if (!ip || ip->ihl != 5 || ip->protocol != IPPROTO_UDP)
		return onward(ctx);
	udp = (void *)(ip + 1);
	if ((void *)(udp + 1) > end)
		return XDP_DROP;
	if (udp->dest == bpf_htons(53)) {
		udp->dest = bpf_htons(5353);
		udp->check = 0;
	}
	return onward(ctx);
}
