/* A line with more than three values, one of them where an address stands: the values lie on the stack, pointers among them, and nobody looks
 * at those of a format that reads memory. */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))

static long (*const trace_vprintk)(const char *, __u32, const void *, __u32) = (void *)177;

SEC("xdp")
int prints(struct xdp_md *ctx)
{
	static const char format[] = "from %pI4 to %pI4, %u of %u";
	__u8 *data = (__u8 *)(long)ctx->data;

	if (data + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_DROP;
	unsigned long long values[] = { (unsigned long)(data + 26), (unsigned long)(data + 30), data[0], data[1] };

	trace_vprintk(format, sizeof(format), values, sizeof(values));
	return XDP_PASS;
}
