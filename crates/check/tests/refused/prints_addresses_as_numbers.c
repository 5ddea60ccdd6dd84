/* The digits of addresses, whose number the result would tell. */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))

static long (*const trace_vprintk)(const char *, __u32, const void *, __u32) = (void *)177;

SEC("xdp")
int prints(struct xdp_md *ctx)
{
	static const char format[] = "from %lx to %lx, %u of %lu";
	__u8 *data = (__u8 *)(long)ctx->data;

	if (data + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_DROP;
	unsigned long long values[] = { (unsigned long)(data + 26), (unsigned long)(data + 30), data[0], data[1] };

	trace_vprintk(format, sizeof(format), values, sizeof(values));
	return XDP_PASS;
}
