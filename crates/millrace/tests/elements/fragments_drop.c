/* Drops fragments. */
#include "filter.h"

SEC("xdp")
int fragments_drop(struct xdp_md *ctx)
{
	struct iphdr *ip = ipv4(ctx);

	if (ip && (ip->frag_off & bpf_htons(0x3fff)))
		return XDP_DROP;
	return onward(ctx);
}
