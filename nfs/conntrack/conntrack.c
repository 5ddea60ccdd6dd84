/* TCP connection tracking: lets through what two TCPs that keep to RFC 9293 may send each other. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include "track.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct pair);
	__type(value, struct connection);
} connections SEC(".maps");

/* What a packet turned out to be. */
enum kind {
	OTHER, /* not TCP over IPv4: not ours to judge */
	WRONG, /* TCP, but its header is not there, or contradicts itself */
	SEGMENT,
};

/* Reads a segment; the pair's lower end first. `*side` is which end sent it. */
static __always_inline enum kind read_segment(struct xdp_md *ctx, struct pair *pair, __u32 *side,
					      struct segment *segment)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;
	struct iphdr *ip = (struct iphdr *)(data + sizeof(struct ethhdr));
	__u32 header, length, offset;
	struct end from, to;
	struct tcphdr *tcp;
	__u8 *at;

	if ((__u8 *)(ip + 1) > end)
		return OTHER;
	/* struct ethhdr is packed: its member would be read in two bytes. */
	if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP) || *(__u8 *)ip >> 4 != 4)
		return OTHER;
	if (ip->protocol != IPPROTO_TCP)
		return OTHER;
	header = (*(__u8 *)ip & 0x0f) * 4;
	/* A later fragment has no TCP header. */
	if (header < sizeof(*ip) || ip->frag_off & bpf_htons(0x1fff))
		return WRONG;
	at = (__u8 *)ip + header;
	tcp = (struct tcphdr *)at;
	if ((__u8 *)(tcp + 1) > end)
		return WRONG;
	length = bpf_ntohs(ip->tot_len);
	offset = (at[12] >> 4) * 4;
	if (offset < sizeof(*tcp) || length < header + offset)
		return WRONG;

	segment->flags = at[13] & (FIN | SYN | RST | ACK);
	segment->seq = bpf_ntohl(tcp->seq);
	segment->ack = bpf_ntohl(tcp->ack_seq);
	/* SYN and FIN take a number each (RFC 9293, 3.4). */
	segment->end = segment->seq + (length - header - offset) + !!(segment->flags & SYN) +
		       !!(segment->flags & FIN);

	from = (struct end){ ip->saddr, tcp->source, 0 };
	to = (struct end){ ip->daddr, tcp->dest, 0 };
	*side = from.address > to.address || (from.address == to.address && from.port > to.port);
	pair->lower = *side ? to : from;
	pair->upper = *side ? from : to;
	return SEGMENT;
}

SEC("xdp")
int conntrack(struct xdp_md *ctx)
{
	struct connection *connection, fresh;
	__u64 now = bpf_ktime_get_ns();
	struct segment segment;
	struct pair pair;
	__u32 side;

	switch (read_segment(ctx, &pair, &side, &segment)) {
	case OTHER:
		return XDP_TX;
	case WRONG:
		return XDP_DROP;
	case SEGMENT:
		break;
	}
	connection = bpf_map_lookup_elem(&connections, &pair);
	if (!connection || may_begin_again(connection, side, &segment, now)) {
		if (segment.flags != SYN)
			return XDP_DROP;
		begin(&fresh, side, &segment, now);
		/* A full table lets no new connection in. */
		return bpf_map_update_elem(&connections, &pair, &fresh, BPF_ANY) ? XDP_DROP :
										   XDP_TX;
	}
	switch (proceed(connection, side, &segment)) {
	case REFUSED:
		return XDP_DROP;
	case ENDED:
		bpf_map_delete_elem(&connections, &pair);
		return XDP_TX;
	case ALLOWED:
		break;
	}
	connection->time = now;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual MIT/GPL";
