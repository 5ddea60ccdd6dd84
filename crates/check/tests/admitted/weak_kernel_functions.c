#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* What some kernels have: their address is asked for first. */
extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *ctx, __u64 *timestamp) __ksym __weak;
extern int bpf_never_heard_of(struct xdp_md *ctx) __ksym __weak;
extern const int some_variable __ksym __weak;

SEC("xdp")
int weak(struct xdp_md *ctx)
{
	__u64 timestamp = 0;

	if (bpf_xdp_metadata_rx_timestamp && bpf_xdp_metadata_rx_timestamp(ctx, &timestamp))
		timestamp = 1;
	if (bpf_never_heard_of)
		return bpf_never_heard_of(ctx);
	return &some_variable ? XDP_DROP : timestamp & 1 ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
