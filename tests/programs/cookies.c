/* SYN cookies and metadata, whose arguments stand in the packet, and whose results are written back. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The kernel's name; libbpf compares it. */
enum xdp_rss_hash_type { NO_HASH };

extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *ctx, __u64 *timestamp) __ksym;
extern int bpf_xdp_metadata_rx_hash(const struct xdp_md *ctx, __u32 *hash, enum xdp_rss_hash_type *type) __ksym;
extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *protocol, __u16 *tag) __ksym;

struct call {
	__u8 ethernet[14];
	__u8 length; /* of the TCP header */
	__u8 which;
	__s64 result;
	__u64 number;
	__u8 ip[40];
	__u8 tcp[60];
};

SEC("xdp")
int cookies(struct xdp_md *ctx)
{
	struct call *p = (void *)(long)ctx->data;
	__u8 ip[40], tcp[60];
	__u32 length;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	for (int i = 0; i < 40; i++)
		ip[i] = p->ip[i];
	for (int i = 0; i < 60; i++)
		tcp[i] = p->tcp[i];
	length = p->length;
	if (length > 60)
		return XDP_DROP;
	switch (p->which) {
	case 0:
		p->result = bpf_tcp_raw_gen_syncookie_ipv4((void *)ip, (void *)tcp, length);
		break;
	case 1:
		p->result = bpf_tcp_raw_gen_syncookie_ipv6((void *)ip, (void *)tcp, length);
		break;
	case 2:
		p->result = bpf_tcp_raw_check_syncookie_ipv4((void *)ip, (void *)tcp);
		break;
	default:
		p->result = bpf_tcp_raw_check_syncookie_ipv6((void *)ip, (void *)tcp);
		break;
	}
	return XDP_PASS;
}

/* Apart: the kernel loads this only for the device that has the metadata. */
SEC("xdp")
int metadata(struct xdp_md *ctx)
{
	struct call *p = (void *)(long)ctx->data;
	enum xdp_rss_hash_type type = 2;
	__u32 hash = 1;
	__u64 time = 3;
	__be16 protocol = 4;
	__u16 tag = 5;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	switch (p->which) {
	case 4:
		p->result = bpf_xdp_metadata_rx_timestamp(ctx, &time);
		p->number = time;
		break;
	case 5:
		p->result = bpf_xdp_metadata_rx_hash(ctx, &hash, &type);
		p->number = (__u64)hash << 32 | type;
		break;
	default:
		p->result = bpf_xdp_metadata_rx_vlan_tag(ctx, &protocol, &tag);
		p->number = (__u64)protocol << 32 | tag;
		break;
	}
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
