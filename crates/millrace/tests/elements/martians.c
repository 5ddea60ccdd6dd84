/* Drops packets from addresses that nobody has (RFC 1812, 5.3.7), and those that do not name their version. */
#include "filter.h"

SEC("xdp")
int martians(struct xdp_md *ctx)
{
	struct iphdr *ip = ipv4(ctx);
	__u32 from;

	if (!ip)
		return onward(ctx);
	from = bpf_ntohl(ip->saddr);
	if (ip->version != 4 || from >> 24 == 127 || from >> 24 == 0 || from >= 0xe0000000)
		return XDP_DROP;
	if (from >= 0xa9fe0000 && from <= 0xa9feffff)
		return XDP_DROP;
	return onward(ctx);
}
