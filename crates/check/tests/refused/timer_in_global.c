#include "xdp.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct bpf_timer timer;

SEC("xdp") int prog(struct xdp_md *ctx)
{
	return bpf_timer_init(&timer, &counts, 1) ? XDP_PASS : XDP_DROP;
}
