#include "xdp.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, __u32);
} limits SEC(".maps");

SEC("xdp") int prog(struct xdp_md *ctx)
{
	__u32 key = 1;

	bpf_map_update_elem(&limits, &key, &key, BPF_ANY);
	return XDP_PASS;
}
