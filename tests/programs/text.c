/* Helpers about texts and bytes whose arguments stand in the packet, and whose results are written back,
 * for comparison with the kernel. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct call {
	__u8 ethernet[14];
	__u8 length; /* of the text, less 1 */
	__u8 which;
	__u64 flags;
	__s64 result;
	__u64 number;
	__u8 text[64];
};

static const char word[] = "millrace";

SEC("xdp")
int text(struct xdp_md *ctx)
{
	struct call *p = (void *)(long)ctx->data;
	__u64 copy[8], number = 0x55;
	__u32 length;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	for (int i = 0; i < 64; i++)
		((__u8 *)copy)[i] = p->text[i];
	length = (p->length & 63) + 1;
	if (p->which == 0)
		p->result = bpf_strtol((char *)copy, length, p->flags, (long *)&number);
	else if (p->which == 1)
		p->result = bpf_strtoul((char *)copy, length, p->flags, (unsigned long *)&number);
	else
		p->result = bpf_strncmp((char *)copy, length, word);
	p->number = number;
	return XDP_PASS;
}

/* Bytes of the packet, at offsets and of lengths that the packet says. */
struct part {
	__u8 ethernet[14];
	__u8 length; /* less 1 */
	__u8 which;
	__u32 offset;
	__u32 spare;
	__s64 result;
	__u8 bytes[64];
};

SEC("xdp.frags")
int part(struct xdp_md *ctx)
{
	struct part *p = (void *)(long)ctx->data;
	__u64 copy[8] = {};
	__u32 length, offset;
	__u8 which;
	__s64 result;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	length = (p->length & 63) + 1;
	which = p->which;
	offset = p->offset;
	if (which == 0) {
		result = bpf_xdp_load_bytes(ctx, offset, copy, length);
	} else if (which == 1) {
		for (int i = 0; i < 8; i++)
			copy[i] = 0x0101010101010101ull * (i + 1);
		result = bpf_xdp_store_bytes(ctx, offset, copy, length);
	} else {
		result = bpf_xdp_get_buff_len(ctx);
	}
	p = (void *)(long)ctx->data;
	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	p->result = result;
	if (which == 0)
		__builtin_memcpy(p->bytes, copy, sizeof(copy));
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
