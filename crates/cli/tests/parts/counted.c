/* Per-CPU counters that nothing depends on, and one per-CPU word of scratch. */
#include "part.h"

struct counts {
	__u64 packets, bytes;
};

TABLE(counts, BPF_MAP_TYPE_PERCPU_ARRAY, struct counts, 256);

SEC("xdp") int counted(struct xdp_md *ctx)
{
	int host = source(ctx);
	struct counts *c;
	__u32 key = host;

	if (host < 0)
		return XDP_PASS;
	c = bpf_map_lookup_elem(&counts, &key);
	if (c) {
		c->packets++;
		c->bytes += ctx->data_end - ctx->data;
	}
	return XDP_TX;
}
