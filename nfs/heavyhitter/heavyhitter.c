/* Heavy hitters: counts the bytes of every flow and reports each once, when it passes a threshold. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>

const volatile __u64 threshold = 1 << 20; /* bytes */

struct flow {
	__be32 src;
	__be32 dst;
	__be16 sport;
	__be16 dport;
	__u8 protocol;
	__u8 zero[3];
};

struct report {
	struct flow flow;
	__u64 bytes; /* how many it had, the packet that passed the threshold included */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, __u64); /* bytes */
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} reports SEC(".maps");

/* The 5-tuple of an IPv4 TCP or UDP packet. */
static __always_inline int read_flow(struct xdp_md *ctx, struct flow *flow)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;
	struct iphdr *ip = (struct iphdr *)(data + sizeof(struct ethhdr));
	__be16 sport = 0, dport = 0;
	__u32 header;

	if ((__u8 *)(ip + 1) > end)
		return 0;
	/* struct ethhdr is packed: its member would be read in two bytes. */
	if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP))
		return 0;
	header = (*(__u8 *)ip & 0x0f) * 4;
	if (*(__u8 *)ip >> 4 != 4 || header < sizeof(*ip))
		return 0;
	if (ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP)
		return 0;
	/* Later fragments have no ports. All of a pair of hosts count as one flow, with ports 0. */
	if (!(ip->frag_off & bpf_htons(0x1fff))) {
		__be16 *ports = (__be16 *)((__u8 *)ip + header);

		if ((__u8 *)(ports + 2) > end || bpf_ntohs(ip->tot_len) < header + 4)
			return 0;
		sport = ports[0];
		dport = ports[1];
	}
	*flow = (struct flow){ ip->saddr, ip->daddr, sport, dport, ip->protocol, {} };
	return 1;
}

static __always_inline void report(const struct flow *flow, __u64 bytes)
{
	struct report *report = bpf_ringbuf_reserve(&reports, sizeof(*report), 0);

	if (!report)
		return;
	report->flow = *flow;
	report->bytes = bytes;
	bpf_ringbuf_submit(report, 0);
}

SEC("xdp")
int heavyhitter(struct xdp_md *ctx)
{
	__u64 size = (__u8 *)(long)ctx->data_end - (__u8 *)(long)ctx->data;
	__u64 *bytes, before = 0;
	struct flow flow;

	if (!read_flow(ctx, &flow))
		return XDP_TX;
	bytes = bpf_map_lookup_elem(&flows, &flow);
	if (bytes)
		before = __sync_fetch_and_add(bytes, size);
	else if (bpf_map_update_elem(&flows, &flow, &size, BPF_NOEXIST))
		return XDP_TX; /* the table is full: this flow is not watched */
	/* Only one packet of a flow takes it from below to above. */
	if (before <= threshold && before + size > threshold)
		report(&flow, before + size);
	return XDP_TX;
}

char _license[] SEC("license") = "Dual MIT/GPL";
