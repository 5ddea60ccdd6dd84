/* Where a packet goes on to: by a map of devices, to all of them, by another program; and a table that evicts. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
} recent SEC(".maps");

int second(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, int(void *));
} programs SEC(".maps") = {
	.values = { [1] = (void *)&second, [3] = (void *)&second },
};

SEC("xdp")
int second(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp")
int first(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data;
	__u64 one = 1;
	__u32 key;

	if ((void *)(p + 2) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	key = p[1];
	switch (p[0] & 3) {
	case 0:
		return bpf_redirect_map(&devices, key, XDP_TX);
	case 1:
		return bpf_redirect_map(&devices, 0, BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS);
	case 2:
		bpf_tail_call(ctx, &programs, key);
		return XDP_DROP;
	}
	return bpf_map_update_elem(&recent, &key, &one, BPF_ANY) ? XDP_ABORTED : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
