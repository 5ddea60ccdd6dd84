/* Two new entries of an LRU table in one packet, where the second may evict the first; a record with bytes of the packet. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} samples SEC(".maps");

SEC("xdp")
int evicted(struct xdp_md *ctx)
{
	__u8 *p = (__u8 *)(long)ctx->data;
	__u32 first, second, one = 1;

	if (p + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_PASS;
	__builtin_memcpy(&first, p + 26, 4);
	__builtin_memcpy(&second, p + 30, 4);
	if (bpf_map_lookup_elem(&seen, &first))
		return XDP_DROP;
	if (bpf_map_update_elem(&seen, &second, &one, BPF_NOEXIST))
		return XDP_TX;
	bpf_map_update_elem(&seen, &first, &one, BPF_ANY);
	bpf_perf_event_output(ctx, &samples, 20ULL << 32 | BPF_F_CURRENT_CPU, &first, sizeof(first));
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
