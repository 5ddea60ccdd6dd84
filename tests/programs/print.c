/* bpf_snprintf for comparison with the kernel: every conversion, flag and width, with numbers from the packet, cut
 * off at every length, into values of a map and onto the stack.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

struct text {
	__s64 length;
	char text[120];
};

MAP(texts, ARRAY, 10, __u32, struct text);

static __always_inline struct text *text(__u32 at)
{
	return bpf_map_lookup_elem(&texts, &at);
}

#define PRINT(at, size, format, ...)                                                    \
	do {                                                                            \
		static const char constant[] = format;                                  \
		__u64 values[] = { __VA_ARGS__ };                                       \
		struct text *to = text(at);                                             \
		if (to)                                                                 \
			to->length = bpf_snprintf(to->text, size, constant, values, sizeof(values)); \
	} while (0)

SEC("xdp") int print(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data;
	__u64 a, b, size;
	char local[24] = "";
	static const char plain[] = "plain %% text";

	if ((void *)(p + 30) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	a = *(__u64 *)(p + 13);
	b = *(__u64 *)(p + 21);
	if (p[12] & 1)
		a >>= p[12] >> 2;
	size = p[29] & 127;
	if (size > 119)
		return XDP_PASS;
	PRINT(0, 120, "%d|%i|%u|%x|%X", a, b, a, b, a);
	PRINT(1, 120, "%ld|%lli|%lu|%llx|%lX", a, b, a, b, a);
	PRINT(2, 120, "%+d|% d|%+ d|%5d|%-5d|%05d|%-05d|%+08d", b, a, b, b & 255, b & 255, b & 255, b & 255, b);
	PRINT(3, size, "%30lx|%-30lX|%030llu|%%|%c", a, b, a, 65 + (b & 15));
	PRINT(4, size, "\t%c%3c%-3c|%2u|%+u|% x\n", 33 + (a & 63), 48, 49, b & 4095, b, a);
	PRINT(5, 0, "%d and %d", a, b);
	struct text *to = text(6);

	if (to)
		to->length = bpf_snprintf(to->text, 100, plain, 0, 0);
	to = text(8);
	if (to) {
		static const char format[] = "%d and %lx";
		__u64 values[] = { a, b };

		/* How much room the text needs. */
		to->length = bpf_snprintf((void *)0, 0, format, values, sizeof(values));
	}
	to = text(9);
	if (to && !(a & 15)) {
		static const char format[] = "%d %% %-8lx";
		static const char nothing[] = "100%%";
		__u64 values[] = { a, b };

		/* How long the lines are. */
		to->length = bpf_trace_vprintk(format, sizeof(format), values, sizeof(values));
		to->length = to->length << 8 | bpf_trace_printk(nothing, sizeof(nothing));
	}
	{
		static const char format[] = "%lu";
		struct text *stack = text(7);
		long n = bpf_snprintf(local, sizeof(local), format, &a, sizeof(a));

		if (stack) {
			stack->length = n;
			__builtin_memcpy(stack->text, local, sizeof(local));
		}
	}
	return a & 1 ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
