/* Lets through frames without a tag, and those of two VLANs. */
#include "filter.h"

SEC("xdp")
int vlan_check(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__be16 *tag = (void *)(eth + 1);
	__u16 id;

	if ((void *)(eth + 1) > end)
		return XDP_DROP;
	if (eth->h_proto != bpf_htons(ETH_P_8021Q) && eth->h_proto != bpf_htons(ETH_P_8021AD))
		return onward(ctx);
	if ((void *)(tag + 2) > end)
		return XDP_DROP;
	id = bpf_ntohs(*tag) & 0xfff;
	return id == 100 || id == 200 ? onward(ctx) : XDP_DROP;
}
