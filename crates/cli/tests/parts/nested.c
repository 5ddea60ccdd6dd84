/* Maps in a map, which no lock can guard. */
#include "part.h"

struct inner {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
};

struct inner odd SEC(".maps"), even SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, struct inner);
} both SEC(".maps") = { .values = { &even, &odd } };

SEC("xdp") int nested(struct xdp_md *ctx)
{
	int host = source(ctx);
	__u32 which = host & 1, zero = 0;
	__u64 one = 1, *n;
	void *inner;

	if (host < 0)
		return XDP_PASS;
	inner = bpf_map_lookup_elem(&both, &which);
	if (!inner)
		return XDP_PASS;
	n = bpf_map_lookup_elem(inner, &zero);
	if (!n) {
		bpf_map_update_elem(inner, &zero, &one, BPF_ANY);
		return XDP_TX;
	}
	*n += 1;
	return *n > 50 ? XDP_DROP : XDP_TX;
}
