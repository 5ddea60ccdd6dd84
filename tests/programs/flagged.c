/* Flags that whoever runs it sets, below a counter in one number: packets of a protocol whose lowest bit is set are dropped. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

MAP(filters, PERCPU_ARRAY, 256, __u32, __u64);

SEC("xdp")
int flagged(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data;
	unsigned char *end = (void *)(long)ctx->data_end;
	__u32 protocol;
	__u64 *filter;

	if (data + 24 > end || data[12] != 8 || data[13] != 0)
		return XDP_PASS;
	protocol = data[23];
	filter = bpf_map_lookup_elem(&filters, &protocol);
	if (!filter)
		return XDP_PASS;
	*filter += 1 << 6;
	return *filter & 1 ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "GPL";
