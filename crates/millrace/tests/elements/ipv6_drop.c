/* Drops IPv6 but neighbour discovery. */
#include "filter.h"

SEC("xdp")
int ipv6_drop(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct ipv6hdr *ip = (void *)(eth + 1);
	__u8 *type = (void *)(ip + 1);

	if ((void *)(eth + 1) > end)
		return XDP_DROP;
	if (eth->h_proto != bpf_htons(ETH_P_IPV6))
		return onward(ctx);
	if ((void *)(type + 1) > end)
		return XDP_DROP;
	if (ip->nexthdr != IPPROTO_ICMPV6)
		return XDP_DROP;
	return *type >= 133 && *type <= 137 ? onward(ctx) : XDP_DROP;
}
