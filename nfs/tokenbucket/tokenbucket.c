/* A token bucket for every flow: this many packets a second, with a burst. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>

const volatile __u64 rate = 1000; /* packets a second */
const volatile __u64 burst = 100; /* packets */

/* Tokens are billionths of a packet: what a nanosecond adds at a packet a second, so that no remainder
 * is lost. */
#define SCALE 1000000000ull
/* The largest burst, in packets, that so counted fits 64 bits. */
#define MOST (~0ull / SCALE)

struct flow {
	__be32 src;
	__be32 dst;
	__be16 sport;
	__be16 dport;
	__u8 protocol;
	__u8 zero[3];
};

struct bucket {
	__u64 tokens;
	__u64 time; /* until when the tokens are counted, ns */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, struct bucket);
} buckets SEC(".maps");

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
	/* Later fragments have no ports. All of a pair of hosts share one bucket, with ports 0. */
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

/* What the bucket holds `elapsed` ns later. The division is only asked whether the product would be
 * more than there is room for, and with it more than 64 bits. */
static __always_inline __u64 fill(__u64 tokens, __u64 full, __u64 elapsed)
{
	__u64 room = full - tokens;

	if (rate && elapsed > room / rate)
		return full;
	return tokens + elapsed * rate;
}

SEC("xdp")
int tokenbucket(struct xdp_md *ctx)
{
	__u64 full = (burst < MOST ? burst : MOST) * SCALE;
	__u64 now = bpf_ktime_get_ns();
	struct bucket *bucket, fresh;
	struct flow flow;

	if (!read_flow(ctx, &flow))
		return XDP_TX;
	bucket = bpf_map_lookup_elem(&buckets, &flow);
	if (!bucket) {
		if (full < SCALE)
			return XDP_DROP;
		fresh.tokens = full - SCALE;
		fresh.time = now;
		/* A full table lets no new flow in. */
		return bpf_map_update_elem(&buckets, &flow, &fresh, BPF_NOEXIST) ? XDP_DROP :
										   XDP_TX;
	}
	if (now > bucket->time) {
		bucket->tokens = fill(bucket->tokens, full, now - bucket->time);
		bucket->time = now;
	}
	if (bucket->tokens < SCALE)
		return XDP_DROP;
	bucket->tokens -= SCALE;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual MIT/GPL";
