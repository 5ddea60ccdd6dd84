/* A table of sources whose entries are all visited for each packet. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} sources SEC(".maps");

static long add(void *map, __u32 *key, __u64 *packets, __u64 *all)
{
	*all += *packets;
	return 0;
}

SEC("xdp")
int visits(struct xdp_md *ctx)
{
	__u8 *p = (__u8 *)(long)ctx->data;
	__u64 all = 0, one = 1, *packets;

	if (p + 34 > (__u8 *)(long)ctx->data_end || p[12] != 8 || p[13])
		return XDP_PASS;
	bpf_for_each_map_elem(&sources, add, &all, 0);
	packets = bpf_map_lookup_elem(&sources, p + 26);
	if (packets)
		*packets += 1;
	else
		bpf_map_update_elem(&sources, p + 26, &one, BPF_ANY);
	return all > 1000 ? XDP_DROP : XDP_PASS;
}
