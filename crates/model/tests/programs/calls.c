/* What calls do to the packet and to entries of maps, chosen by the packet's bytes. */
#include "kernel.h"

MAP(table, HASH, 3, __u32, __u64);
MAP(row, ARRAY, 4, __u32, __u64);
MAP(ports, DEVMAP, 4, __u32, __u32);

/* The head moves, the frame is read and written where it is then. */
SEC("xdp")
int head(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);

	if (p + 20 > END(ctx))
		return XDP_DROP;
	__u8 first = p[0];
	if (adjust_head(ctx, first & 1 ? 4 : -8))
		return XDP_ABORTED;
	p = BEGIN(ctx);
	if (p + 14 > END(ctx))
		return XDP_TX;
	p[1] = p[0] + first;
	p[2] = p[9];
	return XDP_PASS;
}

SEC("xdp")
int tail(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);

	if (p + 20 > END(ctx))
		return XDP_DROP;
	if (p[0] & 1) {
		__u8 less = p[1] & 15;
		if (adjust_tail(ctx, -(int)less))
			return XDP_ABORTED;
	} else if (adjust_tail(ctx, 5)) {
		return XDP_ABORTED;
	}
	p = BEGIN(ctx);
	if (p + 16 > END(ctx))
		return XDP_TX;
	p[2] = buff_len(ctx);
	return XDP_PASS;
}

/* Metadata goes with the head. */
SEC("xdp")
int meta(struct xdp_md *ctx)
{
	__u8 *p, *m;

	if (adjust_meta(ctx, -8))
		return XDP_ABORTED;
	m = META(ctx);
	p = BEGIN(ctx);
	if (m + 8 > p || p + 20 > END(ctx))
		return XDP_DROP;
	m[0] = p[1];
	m[7] = 9;
	if (adjust_head(ctx, 2))
		return XDP_TX;
	m = META(ctx);
	p = BEGIN(ctx);
	if (m + 8 > p || p + 4 > END(ctx))
		return XDP_DROP;
	p[0] = m[0] + m[7] + m[3];
	return adjust_meta(ctx, 3) == -13 ? XDP_PASS : XDP_TX;
}

SEC("xdp")
int bytes(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx), part[6];

	if (p + 8 > END(ctx))
		return XDP_DROP;
	__u32 at = p[0] | p[1] << 12;
	if (load_bytes(ctx, at, part, 6) == -14)
		return XDP_ABORTED;
	part[0] ^= part[5];
	return store_bytes(ctx, p[2], part, 3) ? XDP_TX : XDP_PASS;
}

SEC("xdp")
int sums(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 from[2], to[3];

	if (p + 40 > END(ctx))
		return XDP_DROP;
	__builtin_memcpy(from, p, 8);
	__builtin_memcpy(to, p + 8, 12);
	long a = csum_diff(from, 8, to, 12, p[20]);
	long b = csum_diff(0, 0, to, 12, p[21]);
	long c = csum_diff(from, 8, 0, 0, p[22] << 8);
	__builtin_memcpy(p + 24, &a, 4);
	__builtin_memcpy(p + 28, &b, 4);
	__builtin_memcpy(p + 32, &c, 4);
	return XDP_PASS;
}

SEC("xdp")
int updates(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);

	if (p + 24 > END(ctx))
		return XDP_DROP;
	__u32 key = p[0] & 7;
	__u64 value = p[1], flags = p[2] & 3;
	long result = update(&table, &key, &value, flags);
	p[3] = result;
	__u32 second = p[4] & 7;
	__u64 *found = lookup(&table, &second);
	p[5] = found ? *found : 255;
	if (found)
		*found += 1;
	if (p[6] & 1) {
		p[7] = delete(&table, &key);
		/* Still the entry's, if it was that. */
		if (found && p[2] & 1)
			p[9] = ++*found;
		found = lookup(&table, &key);
		p[8] = found ? 1 : 2;
	}
	return XDP_PASS;
}

SEC("xdp")
int elements(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);

	if (p + 24 > END(ctx))
		return XDP_DROP;
	__u32 key = p[0] & 7;
	__u64 value = p[1];
	p[3] = update(&row, &key, &value, p[2] & 3);
	__u32 second = p[4] & 7;
	__u64 *found = lookup(&row, &second);
	p[5] = found ? *found : 255;
	if (found)
		__sync_fetch_and_add(found, p[6]);
	p[7] = delete(&row, &key);
	return XDP_PASS;
}

SEC("xdp")
int targets(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);

	if (p + 24 > END(ctx))
		return XDP_DROP;
	return redirect_map(&ports, p[0] & 7, p[1] & 35);
}

struct ring {
	__u8 at;
	__u8 seen[6];
	__u8 rest;
};

MAP(rings, HASH, 4, __u32, struct ring);

/* Elements of an array within a value and of one on the stack, by an index that state and packet say. */
SEC("xdp")
int indexed(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	volatile __u8 order[5] = { 9, 7, 5, 3, 1 };

	if (p + 24 > END(ctx))
		return XDP_DROP;
	__u32 key = p[0] & 3;
	struct ring new = { p[1], { 1, 2, 3, 4, 5, 6 }, 0 };
	struct ring *r = lookup(&rings, &key);
	if (!r)
		return update(&rings, &key, &new, 0) ? XDP_ABORTED : XDP_TX;
	__u8 i = r->at % 6;
	p[4] = r->seen[i];
	r->seen[i] = p[2];
	r->at = i + 1;
	order[p[3] % 5] = 2;
	p[5] = order[p[6] % 5];
	return XDP_PASS;
}

struct tall {
	__u32 other;
	__u32 counts[40];
	struct {
		__u64 sum;
		__u32 last;
	} rows[50];
};

MAP(talls, ARRAY, 2, __u32, struct tall);

struct tally {
	__u64 bytes[64];
	__u32 packets[256];
};

MAP(tallies, ARRAY, 1, __u32, struct tally);

/* Arrays of more elements than there are paths for, read, set and added to. */
SEC("xdp")
int tall(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	volatile __u8 order[48] = { 9, 7, 5, [40] = 3, 1 };

	if (p + 24 > END(ctx))
		return XDP_DROP;
	__u32 key = p[0] & 3;
	struct tall *t = lookup(&talls, &key);
	if (!t)
		return XDP_TX;
	t->counts[p[1] % 40] += p[2];
	t->rows[p[3] % 50].last = p[4];
	t->rows[p[5] % 50].sum += t->counts[p[6] % 40];
	__sync_fetch_and_add(&t->rows[p[7] % 50].sum, 3);
	p[8] = order[p[9] % 48];
	order[p[10] % 48] = p[11];
	p[12] = order[p[13] % 48] + t->rows[p[14] % 50].sum;
	return t->counts[p[1] % 40] > 100 ? XDP_DROP : XDP_PASS;
}

/* Counters by a byte of the packet, which nothing depends on. */
SEC("xdp")
int tallied(struct xdp_md *ctx)
{
	__u8 *p = BEGIN(ctx);
	__u32 key = 0;

	if (p + 24 > END(ctx))
		return XDP_DROP;
	struct tally *t = lookup(&tallies, &key);
	if (!t)
		return XDP_ABORTED;
	__sync_fetch_and_add(&t->bytes[p[0] & 63], END(ctx) - p);
	t->packets[p[1]]++;
	return XDP_PASS;
}
