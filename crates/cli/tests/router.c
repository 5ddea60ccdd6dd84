/* Sends each IPv4 packet where the routing table says; what has no way on passes to the host. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int router(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data;
	struct bpf_fib_lookup look = { .family = 2, .ifindex = ctx->ingress_ifindex };
	long result;

	if (p + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_DROP;
	__builtin_memcpy(&look.ipv4_src, p + 26, 4);
	__builtin_memcpy(&look.ipv4_dst, p + 30, 4);
	result = bpf_fib_lookup(ctx, &look, sizeof(look), 0);
	if (result == BPF_FIB_LKUP_RET_BLACKHOLE)
		return XDP_DROP;
	if (result != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_PASS;
	__builtin_memcpy(p, look.dmac, 6);
	__builtin_memcpy(p + 6, look.smac, 6);
	return bpf_redirect(look.ifindex, 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
