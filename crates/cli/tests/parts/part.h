/* What the programs of this folder have in common: UDP over IPv4 by its source address. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

#define TABLE(NAME, TYPE, VALUE, ENTRIES)                                                          \
	struct {                                                                                   \
		__uint(type, TYPE);                                                                \
		__uint(max_entries, ENTRIES);                                                      \
		__type(key, __u32);                                                                \
		__type(value, VALUE);                                                              \
	} NAME SEC(".maps")

/* The last byte of the source address as a number; -1: not such a packet. */
static __always_inline int source(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return -1;
	if (ip->version != 4 || ip->ihl != 5 || ip->protocol != 17)
		return -1;
	if (ip->frag_off & bpf_htons(0x3fff))
		return -1;
	return bpf_ntohl(ip->saddr) & 255;
}
