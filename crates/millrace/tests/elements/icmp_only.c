/* Lets ICMP through that is an echo or its answer, and ARP; the host gets what is too short to say. */
#include "filter.h"

SEC("xdp")
int icmp_only(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	__u8 *type;

	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_ARP))
		return onward(ctx);
	if (eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_DROP;
	if ((void *)(ip + 1) > end)
		return XDP_PASS;
	if (ip->ihl != 5 || ip->protocol != IPPROTO_ICMP)
		return XDP_DROP;
	type = (void *)(ip + 1);
	if ((void *)(type + 8) > end)
		return XDP_DROP;
	return *type == 8 || *type == 0 ? onward(ctx) : XDP_DROP;
}
