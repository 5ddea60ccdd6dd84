/* The kernel's iterator over numbers, for comparison with the kernel: to the end and left early, nested,
 * over no number, with ends that are refused, asked again when it is over.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

#define RESULTS 16

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

MAP(results, ARRAY, RESULTS, __u32, __u64);

static __always_inline void put(__u32 at, __u64 value)
{
	bpf_map_update_elem(&results, &at, &value, BPF_ANY);
}

static __noinline __u64 sum(int start, int end)
{
	struct bpf_iter_num it;
	__u64 total = 0;
	int *n;

	bpf_iter_num_new(&it, start, end);
	while ((n = bpf_iter_num_next(&it)))
		total = total * 3 + *n;
	bpf_iter_num_destroy(&it);
	return total;
}

SEC("xdp") int walk(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 length = end - data;
	struct bpf_iter_num outer, inner;
	__u64 bytes = 0;
	int *n, *k, result;

	put(0, sum(0, length & 63));
	put(1, sum(-5, (int)(length & 15) - 8));
	put(2, sum(length & 1 ? -2147483647 - 1 : 2147483600, length & 1 ? -2147483600 : 2147483647));

	bpf_iter_num_new(&outer, 0, length);
	while ((n = bpf_iter_num_next(&outer))) {
		__u32 at = *n;

		if (at >= 200 || data + at + 1 > end)
			break;
		bytes = bytes * 31 + data[at];
		if (data[at] == 0xfe)
			break;
		bpf_iter_num_new(&inner, 0, data[at] & 3);
		while ((k = bpf_iter_num_next(&inner)))
			bytes += *k;
		/* It is over, and stays so. */
		if (bpf_iter_num_next(&inner))
			bytes = 0;
		bpf_iter_num_destroy(&inner);
	}
	bpf_iter_num_destroy(&outer);
	put(3, bytes);

	result = bpf_iter_num_new(&outer, length & 7, 3);
	put(4, result);
	put(5, bpf_iter_num_next(&outer) != 0);
	bpf_iter_num_destroy(&outer);
	result = bpf_iter_num_new(&outer, -1, (1 << 23) - (length & 1));
	put(6, result);
	n = bpf_iter_num_next(&outer);
	put(7, n ? *n : 77);
	bpf_iter_num_destroy(&outer);
	return bytes & 1 ? XDP_PASS : bytes & 2 ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "GPL";
