/* Loops that the instruction may_goto bounds, for comparison with the kernel: over the packet's bytes, one in
 * another, in a function that is called, and one that only the budget ends. What such a loop has counted
 * by then is not promised (kernels since 6.15 look at a clock), so nothing depends on it.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

#define RESULTS 8

MAP(results, ARRAY, RESULTS, __u32, __u64);

/* Goes on with what follows, or leaves by `label`. */
#define MAY_GOTO(label)                                      \
	asm volatile goto(".byte 0xe5;"                      \
			  ".byte 0;"                         \
			  ".long ((%l[" #label "] - . - 6) / 8) & 0xffff;" \
			  ".short 0"                         \
			  : : : : label)

static __always_inline void put(__u32 at, __u64 value)
{
	bpf_map_update_elem(&results, &at, &value, BPF_ANY);
}

static __noinline __u64 ones(__u64 n)
{
	__u64 steps = 0;

	while (n) {
		MAY_GOTO(out);
		n &= n - 1;
		steps++;
	}
out:
	return steps;
}

SEC("xdp") int may_goto(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 length = (end - data) & 0xfff, i, j;
	__u64 sum = 0, pairs = 0;
	__u8 *p = data;

	if (data + 14 > end)
		return XDP_DROP;
	for (i = 0; i < length; i++) {
		MAY_GOTO(summed);
		if (i > 1500 || (void *)(p + i + 1) > end)
			break;
		sum = sum * 31 + p[i];
	}
summed:
	put(0, sum);
	for (i = p[12] & 7; i < (length & 63); i++) {
		MAY_GOTO(paired);
		for (j = p[13] & 15; j < 40; j++) {
			MAY_GOTO(paired);
			pairs += i ^ j;
		}
	}
paired:
	put(1, pairs);
	put(2, ones(27 + p[13]));
	put(3, ones(length * 1000003ull));
	/* Some packets use the budget up. */
	while (p[11] == 3)
		MAY_GOTO(out);
out:
	put(4, length);
	return sum & 1 ? XDP_PASS : XDP_TX;
}

char _license[] SEC("license") = "GPL";
