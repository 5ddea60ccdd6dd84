/* Functions that helpers call back, for comparison with the kernel: bpf_loop over the packet's bytes,
 * nested, stopped early and called with what it refuses; bpf_for_each_map_elem over each kind of map that
 * it takes, with entries deleted on the way. What the rounds depend on is the packet; the order in which
 * the entries of a hash map come is not promised, so nothing depends on it. Per-CPU values stay zero: the
 * test may move from CPU to CPU.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

#define RESULTS 16

MAP(results, ARRAY, RESULTS, __u32, __u64);
MAP(lengths, HASH, 64, __u32, __u64);

struct address {
	__u8 bytes[6];
};

MAP(sources, LRU_HASH, 4096, struct address, __u64);
MAP(fours, PERCPU_ARRAY, 4, __u32, __u64);

struct scan {
	void *data;
	void *end;
	__u64 sum;
	__u32 stop;
};

static long byte(__u32 at, void *context)
{
	struct scan *scan = context;
	__u8 *p = scan->data;

	if (at >= 1500)
		return 1;
	p += at;
	if ((void *)(p + 1) > scan->end)
		return 1;
	scan->sum = (scan->sum << 1 | scan->sum >> 63) ^ *p;
	return *p == scan->stop;
}

static long triangle(__u32 at, void *context)
{
	__u64 *sum = context;

	*sum += at;
	return 0;
}

static long row(__u32 at, void *context)
{
	__u64 *sum = context;

	*sum ^= bpf_loop(at & 15, triangle, sum, 0);
	return *sum > 5000;
}

static long entry(void *map, const __u32 *key, __u64 *value, void *context)
{
	__u64 *sum = context;

	*sum += *key * 3 + *value;
	if (*value > 3)
		bpf_map_delete_elem(map, key);
	else
		*value += 1;
	return 0;
}

static long source(void *map, const struct address *key, __u64 *value, void *context)
{
	__u64 *sum = context;

	(void)map;
	*sum += key->bytes[5] + *value;
	return 0;
}

static long four(void *map, const __u32 *key, __u64 *value, void *context)
{
	__u64 *sum = context;

	(void)map;
	*sum = *sum * 31 + *value + *key;
	return *key == 2;
}

static __always_inline void put(__u32 at, __u64 value)
{
	bpf_map_update_elem(&results, &at, &value, BPF_ANY);
}

SEC("xdp") int rounds(struct xdp_md *ctx)
{
	struct scan scan = {
		.data = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.stop = 0xfe,
	};
	__u64 sum = 0, one = 1, zero = 0, flags = 0;
	__u32 length = ctx->data_end - ctx->data, key = length & 31;
	struct address from = {};
	long n;

	if (scan.data + 14 > scan.end)
		return XDP_DROP;
	__builtin_memcpy(from.bytes, scan.data + 6, 6);
	put(0, bpf_loop(length, byte, &scan, 0));
	put(1, scan.sum);
	put(2, bpf_loop(key, row, &sum, 0));
	put(3, sum);
	/* Eight million rounds and one more; a flag; no round at all. */
	put(4, bpf_loop((1 << 23) + (length & 1), byte, &scan, 0));
	flags = length & 2;
	put(5, bpf_loop(3, triangle, &sum, flags));
	put(6, bpf_loop(0, triangle, &sum, 0));
	put(7, bpf_loop(5, row, &sum, 0));
	bpf_map_update_elem(&lengths, &key, &one, BPF_NOEXIST);
	put(8, bpf_for_each_map_elem(&lengths, entry, &sum, 0));
	put(9, sum);
	bpf_map_update_elem(&sources, &from, &zero, BPF_ANY);
	put(10, bpf_for_each_map_elem(&sources, source, &sum, 0));
	put(11, bpf_for_each_map_elem(&fours, four, &sum, 0));
	put(12, bpf_for_each_map_elem(&fours, four, &sum, flags));
	put(13, sum);
	n = bpf_loop(length & 7, triangle, &one, 0);
	return n == 5 ? XDP_DROP : n == 6 ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
