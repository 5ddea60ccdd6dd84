/* Calls whose answers no packet decides. */
#include "kernel.h"

struct inner {
	__uint(type, HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
};

struct {
	__uint(type, HASH_OF_MAPS);
	__uint(max_entries, 4);
	__type(key, __u32);
	__array(values, struct inner);
} tenants SEC(".maps");

struct {
	__uint(type, RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

MAP(samples, PERF_EVENT_ARRAY, 4, __u32, __u32);

struct {
	__uint(type, STACK);
	__uint(max_entries, 4);
	__type(value, __u32);
} pile SEC(".maps");

struct {
	__uint(type, QUEUE);
	__uint(max_entries, 4);
	__type(value, __u32);
} line SEC(".maps");

struct {
	__uint(type, BLOOM_FILTER);
	__uint(max_entries, 64);
	__type(value, __u32);
} seen SEC(".maps");

MAP(recent, LRU_HASH, 4, __u32, __u64);

struct prefix {
	__u32 bits;
	__u32 address;
};

struct {
	__uint(type, LPM_TRIE);
	__uint(max_entries, 4);
	__uint(map_flags, 1);
	__type(key, struct prefix);
	__type(value, __u64);
} prefixes SEC(".maps");

MAP(visited, HASH, 2, __u32, __u64);
MAP(programs, PROG_ARRAY, 4, __u32, __u32);
MAP(table, HASH, 8, __u32, __u64);

#define WORD(p, at) (*(__u32 *)((p) + (at)))

/* Two tenants may have one map: what is stored for the first is what the second finds. */
SEC("xdp")
int nested(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 key = 1;
	__u64 value = 7, *found;
	void *a, *b;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	a = lookup(&tenants, p);
	b = lookup(&tenants, p + 4);
	if (!a || !b)
		return XDP_DROP;
	if (update(a, &key, &value, BPF_ANY))
		return XDP_ABORTED;
	found = lookup(b, &key);
	if (!found)
		return XDP_PASS;
	return *found == 7 ? XDP_TX : XDP_DROP;
}

struct inner spare SEC(".maps");

/* A tenant's map, or another one that may be a tenant's, too. */
SEC("xdp")
int spared(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	void *map;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	map = lookup(&tenants, p);
	if (!map)
		map = &spare;
	if (!lookup(map, p + 4))
		return XDP_ABORTED;
	return XDP_PASS;
}

/* What is stored in a tenant's map may be what is found in the other one. */
SEC("xdp")
int shared(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 value = 7, *found;
	__u32 key = 1;
	void *map;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	map = lookup(&tenants, p);
	if (!map || update(map, &key, &value, BPF_ANY))
		return XDP_DROP;
	delete(&spare, &key);
	found = lookup(map, &key);
	if (!found)
		return XDP_PASS;
	return *found == 7 ? XDP_TX : XDP_ABORTED;
}

SEC("xdp")
int record(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 *r;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	r = reserve(&events, 8, 0);
	if (!r)
		return XDP_ABORTED;
	r[0] = WORD(p, 0);
	r[1] = 5;
	submit(r, 0);
	return XDP_PASS;
}

SEC("xdp")
int sample(struct xdp_md *ctx)
{
	__u32 word = 3;

	return perf_output(ctx, &samples, 0xffffffffull | 16ull << 32, &word, 4) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int pushed(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 out = 0;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	if (push(&pile, p, 0))
		return XDP_ABORTED;
	if (pop(&pile, &out))
		return XDP_TX;
	return out == WORD(p, 0) ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int queued(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 out = 0;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	if (push(&line, p, 0))
		return XDP_ABORTED;
	if (pop(&line, &out))
		return XDP_TX;
	return out == WORD(p, 0) ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int filtered(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);

	if (p + 24 > END(ctx))
		return XDP_DROP;
	if (push(&seen, p, 0))
		return XDP_ABORTED;
	if (peek(&seen, p))
		return XDP_TX;
	return peek(&seen, p + 4) ? XDP_DROP : XDP_PASS;
}

/* The second key's entry may take the first one's place. */
SEC("xdp")
int evicted(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 value = 1, *first;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	first = lookup(&recent, p);
	if (!first)
		return XDP_DROP;
	if (update(&recent, p + 4, &value, BPF_NOEXIST))
		return XDP_ABORTED;
	return *first ? XDP_TX : XDP_PASS;
}

SEC("xdp")
int deleted(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 *value;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	value = lookup(&table, p);
	if (!value)
		return XDP_DROP;
	delete(&table, p);
	return *value ? XDP_TX : XDP_PASS;
}

SEC("xdp")
int replaced(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u64 *value, new = 1;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	value = lookup(&table, p);
	if (!value)
		return XDP_DROP;
	delete(&table, p);
	update(&table, p + 8, &new, 0);
	return *value ? XDP_TX : XDP_PASS;
}

/* Two addresses may be in one prefix. */
SEC("xdp")
int aliased(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	struct prefix a = { 32 }, b = { 32 };
	__u64 *x, *y;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	a.address = WORD(p, 0);
	b.address = WORD(p, 4);
	x = lookup(&prefixes, &a);
	if (!x)
		return XDP_DROP;
	*x = 77;
	y = lookup(&prefixes, &b);
	if (!y)
		return XDP_DROP;
	return *y == 77 ? XDP_TX : XDP_PASS;
}

static long count(void *map, __u32 *key, __u64 *value, __u64 *sum)
{
	*sum += *value;
	return 0;
}

SEC("xdp")
int visits(struct xdp_md *ctx)
{
	__u64 sum = 0;
	long n = for_each(&visited, count, &sum, 0);

	return n == 2 && sum == 5 ? XDP_TX : XDP_PASS;
}

SEC("xdp")
int goes_on(struct xdp_md *ctx)
{
	tail_call(ctx, &programs, 2);
	return XDP_DROP;
}
