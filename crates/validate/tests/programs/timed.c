/* A value with a timer, which deletes its entry. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct value {
	struct bpf_timer timer;
	__u64 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct value);
} flows SEC(".maps");

static int expire(void *map, __u32 *key, struct value *value)
{
	bpf_map_delete_elem(map, key);
	return 0;
}

SEC("xdp")
int timed(struct xdp_md *ctx)
{
	struct value new = {}, *found;
	__u32 key = ctx->rx_queue_index;

	found = bpf_map_lookup_elem(&flows, &key);
	if (!found) {
		bpf_map_update_elem(&flows, &key, &new, BPF_ANY);
		found = bpf_map_lookup_elem(&flows, &key);
		if (!found)
			return XDP_DROP;
		bpf_timer_init(&found->timer, &flows, 1);
		bpf_timer_set_callback(&found->timer, expire);
		bpf_timer_start(&found->timer, 3000000, 0);
	}
	return found->packets++ > 10 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
