/* A table that packets fill, and counters beside it. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

__u64 total, by_byte[64];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} packets SEC(".maps");

SEC("xdp")
int beside(struct xdp_md *ctx)
{
	__u8 *p = (__u8 *)(long)ctx->data;
	__u32 source, one = 1;

	if (p + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_PASS;
	__builtin_memcpy(&source, p + 26, 4);
	total++;
	by_byte[p[14] & 63] += 3;
	__u32 at = p[15] & 3;
	__u64 *count = bpf_map_lookup_elem(&packets, &at);
	if (count)
		*count += 1;
	if (bpf_map_lookup_elem(&seen, &source))
		return XDP_DROP;
	return bpf_map_update_elem(&seen, &source, &one, BPF_NOEXIST) ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
