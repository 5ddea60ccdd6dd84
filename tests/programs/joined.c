/* One call for either of two maps, as compilers join them: the sixteenth byte of a packet chooses. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

MAP(left, HASH, 300, __u32, __u64);
MAP(right, ARRAY, 8, __u32, __u64);
MAP(ports, DEVMAP, 4, __u32, __u32);
MAP(others, DEVMAP_HASH, 4, __u32, __u32);

SEC("xdp")
int joined(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data;
	__u64 one = 1, *value;
	__u32 key;

	if (p + 20 > (__u8 *)(long)ctx->data_end)
		return XDP_ABORTED;
	key = p[14] & 15;
	value = p[15] & 1 ? bpf_map_lookup_elem(&left, &key) : bpf_map_lookup_elem(&right, &key);
	if (value)
		__sync_fetch_and_add(value, 1);
	else if (p[15] & 1)
		bpf_map_update_elem(&left, &key, &one, BPF_ANY);
	else
		bpf_map_update_elem(&right, &key, &one, BPF_ANY);
	if (p[16] & 1)
		return p[15] & 2 ? bpf_redirect_map(&ports, p[17] & 7, XDP_DROP)
				 : bpf_redirect_map(&others, p[17] & 7, XDP_DROP);
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
