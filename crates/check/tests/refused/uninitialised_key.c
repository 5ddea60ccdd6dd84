#include "xdp.h"

struct key {
	__u8 protocol;
	__u32 address;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, struct key);
	__type(value, __u64);
} flows SEC(".maps");

SEC("xdp") int prog(struct xdp_md *ctx)
{
	struct key key;

	key.protocol = 6;
	key.address = ctx->ingress_ifindex;
	return bpf_map_lookup_elem(&flows, &key) ? XDP_PASS : XDP_DROP;
}
