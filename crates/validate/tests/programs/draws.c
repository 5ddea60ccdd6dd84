/* Two random draws a packet, of which the first decides nothing where the source is new; the second is a key. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} sources SEC(".maps"), drawn SEC(".maps");

SEC("xdp")
int draws(struct xdp_md *ctx)
{
	__u8 *p = (__u8 *)(long)ctx->data;
	__u32 first = bpf_get_prandom_u32(), second;
	__u64 one = 1, *packets;

	if (p + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_PASS;
	packets = bpf_map_lookup_elem(&sources, p + 26);
	if (packets && (first & 1))
		return XDP_DROP;
	second = bpf_get_prandom_u32() & 15;
	if (!packets)
		bpf_map_update_elem(&sources, p + 26, &one, BPF_ANY);
	packets = bpf_map_lookup_elem(&drawn, &second);
	if (packets)
		return ++*packets & 1 ? XDP_TX : XDP_PASS;
	bpf_map_update_elem(&drawn, &second, &one, BPF_ANY);
	return XDP_DROP;
}
