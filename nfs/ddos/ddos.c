/* A DDoS mitigator: counts the packets of every source and drops what a source sends too much. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

const volatile __u64 threshold = 1000; /* packets of a source that are let through */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __be32); /* source address */
	__type(value, __u64); /* packets */
} sources SEC(".maps");

/* Whether it is an IPv4 packet; `*source` is who sent it. */
static __always_inline int read_source(struct xdp_md *ctx, __be32 *source)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;
	struct iphdr *ip = (struct iphdr *)(data + sizeof(struct ethhdr));

	if ((__u8 *)(ip + 1) > end)
		return 0;
	/* struct ethhdr is packed: its member would be read in two bytes. */
	if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP))
		return 0;
	if (*(__u8 *)ip >> 4 != 4 || (*(__u8 *)ip & 0x0f) < 5)
		return 0;
	*source = ip->saddr;
	return 1;
}

SEC("xdp")
int ddos(struct xdp_md *ctx)
{
	__u64 *packets, before = 0, one = 1;
	__be32 source;

	if (!read_source(ctx, &source))
		return XDP_TX;
	packets = bpf_map_lookup_elem(&sources, &source);
	if (packets)
		before = __sync_fetch_and_add(packets, 1);
	else if (bpf_map_update_elem(&sources, &source, &one, BPF_NOEXIST))
		return XDP_DROP; /* the table is full: nobody new comes in */
	return before < threshold ? XDP_TX : XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
