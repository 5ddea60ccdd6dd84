/* A verdict by how full a ring buffer is, which no execution says before it is asked. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

SEC("xdp")
int asked(struct xdp_md *ctx)
{
	__u64 held = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);

	bpf_ringbuf_output(&ring, &held, sizeof(held), 0);
	return held > 512 ? XDP_DROP : XDP_PASS;
}
