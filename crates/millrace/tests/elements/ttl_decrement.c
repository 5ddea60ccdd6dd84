/* Lowers the time to live, and the sum as the kernel does (ip_decrease_ttl); what has none to spare goes to the host. */
#include "filter.h"

SEC("xdp")
int ttl_decrement(struct xdp_md *ctx)
{
	struct iphdr *ip = ipv4(ctx);
	__u32 check;

	if (!ip)
		return onward(ctx);
	if (ip->ttl <= 1)
		return XDP_PASS;
	check = ip->check;
	check += bpf_htons(0x0100);
	ip->check = (__u16)(check + (check >= 0xffff));
	ip->ttl--;
	return onward(ctx);
}
