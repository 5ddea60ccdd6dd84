/* Entries by chance in a map that evicts, so that what a packet finds depends on draws, on which place is the next to be
 * taken, and on which entries the hand has passed. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} recent SEC(".maps");

SEC("xdp")
int chance(struct xdp_md *ctx)
{
	__u32 draw = bpf_get_prandom_u32(), key = draw & 7;
	__u64 one = 1, *seen = bpf_map_lookup_elem(&recent, &key);

	(void)ctx;
	if (draw & 0x18) {
		if (!seen)
			return bpf_map_update_elem(&recent, &key, &one, BPF_ANY) ? XDP_ABORTED : XDP_TX;
		*seen += 1;
		return *seen & 1 ? XDP_PASS : XDP_DROP;
	}
	return bpf_map_delete_elem(&recent, &key) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
