/* All entries of a table of few places are visited, one place after another. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} sources SEC(".maps");

static long first(void *map, __u32 *key, __u64 *packets, __u32 *found)
{
	*found = *key;
	return 1;
}

SEC("xdp")
int visited(struct xdp_md *ctx)
{
	__u8 *p = (__u8 *)(long)ctx->data;
	__u64 one = 1, *packets;
	__u32 found = 0;

	if (p + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_PASS;
	bpf_for_each_map_elem(&sources, first, &found, 0);
	packets = bpf_map_lookup_elem(&sources, p + 26);
	if (packets)
		*packets += 1;
	else
		bpf_map_update_elem(&sources, p + 26, &one, BPF_ANY);
	return found ? XDP_DROP : XDP_PASS;
}
