/* Port knocking: a source that sends to TCP ports 100, 101 and 102 in turn is let in. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

/* How far a source has come. A source that is in no table is at KNOCK_1. */
enum state {
	KNOCK_1 = 0, /* waits for port 100 */
	KNOCK_2 = 1, /* … 101 */
	KNOCK_3 = 2, /* … 102 */
	OPEN = 3,
};

#define FIRST_PORT 100

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __be32); /* source address */
	__type(value, __u32); /* enum state */
} sources SEC(".maps");

/* The TCP header of an IPv4 packet, or null; `*source` is who sent it. */
static __always_inline struct tcphdr *read_tcp(struct xdp_md *ctx, __be32 *source)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;
	struct iphdr *ip = (struct iphdr *)(data + sizeof(struct ethhdr));
	struct tcphdr *tcp;
	__u32 header, length;
	__u8 *at;

	if ((__u8 *)(ip + 1) > end)
		return 0;
	/* struct ethhdr is packed: its member would be read in two bytes. */
	if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP))
		return 0;
	header = (*(__u8 *)ip & 0x0f) * 4;
	length = bpf_ntohs(ip->tot_len);
	if (*(__u8 *)ip >> 4 != 4 || header < sizeof(*ip) ||
	    length < header + sizeof(struct tcphdr))
		return 0;
	/* A later fragment has no TCP header. */
	if (ip->protocol != IPPROTO_TCP || ip->frag_off & bpf_htons(0x1fff))
		return 0;
	at = (__u8 *)ip + header;
	tcp = (struct tcphdr *)at;
	if ((__u8 *)(tcp + 1) > end)
		return 0;
	*source = ip->saddr;
	return tcp;
}

SEC("xdp")
int portknock(struct xdp_md *ctx)
{
	__be32 source;
	struct tcphdr *tcp = read_tcp(ctx, &source);
	__u32 *state, first = KNOCK_2;
	__u16 port;

	if (!tcp)
		return XDP_DROP;
	port = bpf_ntohs(tcp->dest);
	state = bpf_map_lookup_elem(&sources, &source);
	if (!state) {
		if (port == FIRST_PORT)
			bpf_map_update_elem(&sources, &source, &first, BPF_ANY);
		return XDP_DROP;
	}
	if (*state != OPEN) {
		/* The right knock is one step on; any other starts again, and may itself be the
		 * first of a new attempt. */
		if (port == FIRST_PORT + *state)
			*state += 1;
		else
			*state = port == FIRST_PORT ? KNOCK_2 : KNOCK_1;
	}
	return *state == OPEN ? XDP_TX : XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
