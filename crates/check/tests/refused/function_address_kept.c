#include "xdp.h"

static long add(__u32 i, void *context)
{
	*(__u64 *)context += i;
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} kept SEC(".maps");

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u32 zero = 0;
	__u64 *place = bpf_map_lookup_elem(&kept, &zero);

	if (place)
		*place = (__u64)add;
	return XDP_PASS;
}
