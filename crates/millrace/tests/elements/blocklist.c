/* Drops what networks send that stand in a list of constants. */
#include "filter.h"

static const struct {
	__u32 net, mask;
} blocked[] = {
	{ 0x0a010000, 0xffff0000 },
	{ 0xc0000200, 0xffffff00 },
	{ 0xc6336400, 0xffffff00 },
	{ 0x08080808, 0xffffffff },
};

SEC("xdp")
int blocklist(struct xdp_md *ctx)
{
	struct iphdr *ip = ipv4(ctx);
	__u32 from;

	if (!ip)
		return onward(ctx);
	from = bpf_ntohl(ip->saddr);
#pragma unroll
	for (int i = 0; i < 4; i++)
		if ((from & blocked[i].mask) == blocked[i].net)
			return XDP_DROP;
	return onward(ctx);
}
