/* Samples for the host: the source of a packet, and behind it the packet's first bytes. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define BYTES 14ULL

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

SEC("xdp")
int samples(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data;
	unsigned char *end = (void *)(long)ctx->data_end;
	__u32 source;

	if (data + 34 > end || data[12] != 8 || data[13] != 0)
		return XDP_PASS;
	source = *(__u32 *)(data + 26);
	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU | BYTES << 32, &source, sizeof(source));
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
