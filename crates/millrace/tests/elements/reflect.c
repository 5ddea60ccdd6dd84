/* Sends UDP to port 7 back to where it came from. */
#include "filter.h"

SEC("xdp")
int reflect(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = ipv4(ctx);
	struct udphdr *udp;
	__u8 mac[ETH_ALEN];

	if (!ip || ip->protocol != IPPROTO_UDP)
		return onward(ctx);
	udp = (void *)ip + ip->ihl * 4;
	if ((void *)(udp + 1) > end || udp->dest != bpf_htons(7))
		return onward(ctx);
	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	return XDP_TX;
}
