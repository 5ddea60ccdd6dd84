/* A per-CPU counter that decides: on several cores it would let more through. */
#include "part.h"

TABLE(seen, BPF_MAP_TYPE_PERCPU_ARRAY, __u64, 1);

SEC("xdp") int limited(struct xdp_md *ctx)
{
	__u32 key = 0;
	__u64 *n = bpf_map_lookup_elem(&seen, &key);

	if (!n)
		return XDP_PASS;
	*n += 1;
	return *n > 100 ? XDP_DROP : XDP_TX;
}
