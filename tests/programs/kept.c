/* What the part before the first look-up leaves on the stack, read behind it through a pointer that may as
 * well be to a map's value. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

MAP(seen, HASH, 64, __u32, __u64);

SEC("xdp")
int kept(struct xdp_md *ctx)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	volatile __u64 own;
	volatile __u64 *count;
	__u64 one = 1;
	__u32 key;

	if (data + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_PASS;
	own = data[17] + data[33];
	key = data[29] & 31;
	count = bpf_map_lookup_elem(&seen, &key);
	if (!count) {
		count = &own;
		bpf_map_update_elem(&seen, &key, &one, BPF_ANY);
	}
	*count += 1;
	return *count % 3 ? XDP_TX : XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
