#include "xdp.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} last SEC(".maps");

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u32 key = 0;
	__u64 *value = bpf_map_lookup_elem(&last, &key);

	if (value)
		*value = (__u64)ctx;
	return XDP_PASS;
}
