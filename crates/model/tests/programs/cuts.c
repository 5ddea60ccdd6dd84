/* Questions asked one behind the other: 2^24 ways through, each of which leaves something else in the counters. */
#include "kernel.h"

MAP(known, HASH, 1024, __u32, __u64);
MAP(counters, PERCPU_ARRAY, 32, __u32, __u64);
MAP(seen, HASH, 1024, __u32, __u64);
MAP(last, HASH, 1024, __u32, __u64);

#define ASK(i)                                     \
	key = *(__u32 *)(p + 4 * (i));             \
	if (lookup(&known, &key)) {                \
		key = i;                           \
		count = lookup(&counters, &key);   \
		if (count)                         \
			*count += p[i];            \
		APART(i);                          \
	}
#define SIX(i) ASK(i) ASK(i + 1) ASK(i + 2) ASK(i + 3) ASK(i + 4) ASK(i + 5)

/* Nothing of what is counted shows, and what is seen is found again by an address. */
SEC("xdp")
int counts(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 *count, one = 1;
	__u32 key;

	if (p + 128 > END(ctx) || p[12] != 8 || p[13] != 0)
		return XDP_DROP;
	key = *(__u32 *)(p + 26);
	__u64 *mine = lookup(&seen, &key);
	SIX(0) SIX(6) SIX(12) SIX(18)
	if (mine) {
		*mine += 1;
		return *mine > 100 ? XDP_DROP : XDP_PASS;
	}
	key = *(__u32 *)(p + 26);
	update(&seen, &key, &one, BPF_ANY);
	return XDP_PASS;
}

/* What was counted before the questions decides after them. */
SEC("xdp")
int shows(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 *count, before = 0;
	__u32 key = 30;

	if (p + 128 > END(ctx) || p[12] != 8 || p[13] != 0)
		return XDP_DROP;
	count = lookup(&counters, &key);
	if (count)
		before = (*count)++;
	SIX(0) SIX(6) SIX(12) SIX(18)
	return before & 1 ? XDP_DROP : XDP_PASS;
}

struct {
	__uint(type, RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

/* Records of two lengths, which one call hands over. */
SEC("xdp")
int lengths(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	void *record;

	if (p + 128 > END(ctx))
		return XDP_DROP;
	if (p[0] & 1) {
		record = reserve(&ring, 16, 0);
		if (!record)
			return XDP_DROP;
		((__u64 *)record)[1] = p[1];
	} else {
		record = reserve(&ring, 24, 0);
		if (!record)
			return XDP_DROP;
		((__u64 *)record)[1] = p[2];
	}
	*(__u64 *)record = p[3];
	submit(record, 0);
	return XDP_PASS;
}

/* The entry that the questions' answers lead to is that of any key. */
SEC("xdp")
int wanders(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 *count, one = 1;
	__u32 key, found = 0;

	if (p + 128 > END(ctx))
		return XDP_DROP;
	key = *(__u32 *)p;
	count = lookup(&known, &key);
	if (count)
		found = *count;
	SIX(0) SIX(6) SIX(12) SIX(18)
	update(&last, &found, &one, BPF_ANY);
	return XDP_PASS;
}
