/* A limit for each source, and beside it how many packets there were in all. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

MAP(sources, HASH, 1024, __u32, __u64);
MAP(packets, PERCPU_ARRAY, 1, __u32, __u64);

SEC("xdp")
int heavy(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data;
	unsigned char *end = (void *)(long)ctx->data_end;
	__u64 one = 1, *all, *of;
	__u32 source, zero = 0;

	if (data + 34 > end || data[12] != 8 || data[13] != 0)
		return XDP_PASS;
	all = bpf_map_lookup_elem(&packets, &zero);
	if (all)
		++*all;
	source = *(__u32 *)(data + 26);
	of = bpf_map_lookup_elem(&sources, &source);
	if (!of) {
		bpf_map_update_elem(&sources, &source, &one, BPF_ANY);
		return XDP_TX;
	}
	return ++*of > 100 ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "GPL";
