/* Elements of an array by the source address, of which each has a worker. */
#include "part.h"

TABLE(hosts, BPF_MAP_TYPE_ARRAY, __u64, 256);
TABLE(all, BPF_MAP_TYPE_ARRAY, __u32, 4);

SEC("xdp") int elements(struct xdp_md *ctx)
{
	int host = source(ctx);
	__u32 key = host, two = 2;
	__u32 *total;
	__u64 *n;

	if (host < 0)
		return XDP_PASS;
	total = bpf_map_lookup_elem(&all, &two);
	if (total)
		*total += 3;
	n = bpf_map_lookup_elem(&hosts, &key);
	if (!n)
		return XDP_PASS;
	*n += 1;
	return *n > 5 ? XDP_DROP : XDP_TX;
}
