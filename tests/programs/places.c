/* What relates two places, in every way that C knows: admitted, and what comes out is BPF's own number. Each program
 * leaves what it found in `trace`; tests/tests/places.rs compares it with the interpreter, under sanitizers and as users
 * run it, at several levels of optimisation. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

#define NOINLINE static __attribute__((noinline))
#define BARRIER(x) asm volatile("" : "+r"(x))

struct value {
	__u8 bytes[64];
};

MAP(values, ARRAY, 4, __u32, struct value);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} ring SEC(".maps");

__u64 trace;

static __always_inline int end(__u64 number)
{
	trace = trace * 31 + number;
	return number & 1 ? XDP_PASS : XDP_DROP;
}

static __always_inline struct value *value_at(__u32 key)
{
	return bpf_map_lookup_elem(&values, &key);
}

static __always_inline __u8 byte(struct xdp_md *ctx, int at)
{
	__u8 *data = (void *)(long)ctx->data, *last = (void *)(long)ctx->data_end;

	return data + at + 1 > last ? 5 : data[at];
}

/* The issue's: an array of the caller's in a function of its own. */
NOINLINE __u64 span(__u64 *a, __u64 *b) { return (__u64)b - (__u64)a; }

SEC("xdp") int issue(struct xdp_md *ctx)
{
	__u64 x[32];
	struct value *v = value_at(0);
	__u64 d;

	if (!v)
		return XDP_ABORTED;
	x[0] = byte(ctx, 0);
	x[31] = 7;
	d = span(&x[0], &x[31]);
	if (d >= 256)
		return end(2);
	v->bytes[d >> 3] = 1;
	return end(d + x[31]);
}

/* A pointer that walks. */
SEC("xdp") int walks(struct xdp_md *ctx)
{
	__u8 b[32] = {}, *p = b;
	__u64 l;

	for (int i = 0; i < 9; i++) {
		*p++ = i;
		BARRIER(p);
	}
	l = p - b;
	if (l > 31)
		return end(99);
	b[31 - l] = 1;
	return end(b[22] + 256 * l);
}

SEC("xdp") int walks_to_the_end(struct xdp_md *ctx)
{
	__u8 b[16], *p = b, *last = b + 16;
	__u64 sum = 0;

	BARRIER(last);
#pragma clang loop unroll(disable)
	for (; p < last; p++)
		*p = p - b;
#pragma clang loop unroll(disable)
	for (p = b; p != last; p++)
		sum = sum * 3 + *p;
	return end(sum);
}

SEC("xdp") int walks_back(struct xdp_md *ctx)
{
	__u32 w[8], *p = w + 8;
	__u64 sum = 0;

	BARRIER(p);
#pragma clang loop unroll(disable)
	while (p > w) {
		p--;
		*p = byte(ctx, 1) + (p - w);
	}
	for (int i = 0; i < 8; i++)
		sum = sum * 5 + w[i];
	return end(sum);
}

NOINLINE int same(void *a, void *b) { return a == b; }
NOINLINE int before(void *a, void *b) { return a < b; }
NOINLINE long apart(void *a, void *b) { return a - b; }

SEC("xdp") int equality(struct xdp_md *ctx)
{
	__u64 a = byte(ctx, 0), b = byte(ctx, 1), c[4] = {a, b};

	return end(same(&a, &b) + 2 * same(&a, &a) + 4 * same(&c[1], c + 1) + 8 * same(c, &c[3]) + a + b + c[2]);
}

SEC("xdp") int order_within(struct xdp_md *ctx)
{
	__u64 c[8] = {byte(ctx, 0)};

	return end(before(&c[1], &c[2]) + 2 * before(&c[2], &c[1]) + 4 * before(c, c + 8) + c[3]);
}

SEC("xdp") int signed_distance(struct xdp_md *ctx)
{
	__u64 c[8] = {byte(ctx, 0)};
	long d = apart(&c[1], &c[6]);

	return end(d < 0 ? -d : 1000 + d);
}

SEC("xdp") int chosen(struct xdp_md *ctx)
{
	__u64 c[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *p = byte(ctx, 0) & 1 ? &c[2] : &c[5];

	BARRIER(p);
	return end((p - c) * 100 + *p);
}

SEC("xdp") int chosen_index(struct xdp_md *ctx)
{
	__u8 c[16] = {1, 2, 3}, *p = &c[byte(ctx, 0) & 15];

	BARRIER(p);
	*p = 9;
	c[15 - (p - c)] = 4;
	return end((p - c) + 16 * c[3] + 256 * c[12]);
}

SEC("xdp") int spilled(struct xdp_md *ctx)
{
	__u8 c[16] = {}, *volatile p = c + 3, *volatile q = c + 11;

	*p = byte(ctx, 0);
	return end((q - p) * 256 + c[3]);
}

struct cursor {
	__u8 *begin, *at, *end;
};

NOINLINE int put(struct cursor *c, __u8 x)
{
	if (c->at >= c->end)
		return -1;
	*c->at++ = x;
	return 0;
}

SEC("xdp") int through_a_cursor(struct xdp_md *ctx)
{
	__u8 b[4] = {};
	struct cursor c = {b, b, b + 4};
	int full = 0;

	for (int i = 0; i < 6; i++)
		full += put(&c, i + 1);
	return end(b[0] + 7 * b[3] + 100 * (__u64)(c.at - c.begin) - full);
}

SEC("xdp") int lower_halves(struct xdp_md *ctx)
{
	__u64 c[8] = {byte(ctx, 0)}, *p = c + (byte(ctx, 1) & 7);

	BARRIER(p);
	return end((__u32)(long)p - (__u32)(long)c + c[0]);
}

SEC("xdp") int from_the_frame(struct xdp_md *ctx)
{
	__u64 d;

	asm volatile("r2 = r10; r2 += -16; r3 = r10; r3 -= r2; %0 = r3" : "=r"(d) : : "r2", "r3");
	return end(d);
}

SEC("xdp") int above_the_frame(struct xdp_md *ctx)
{
	__u64 d;

	/* Places outside of the stack may be named, as long as nothing goes there. */
	asm volatile("r2 = r10; r2 += 64; r3 = r10; r3 += -900; r2 -= r3; %0 = r2" : "=r"(d) : : "r2", "r3");
	return end(d);
}

SEC("xdp") int back_from_above(struct xdp_md *ctx)
{
	__u64 d = byte(ctx, 0) & 7;

	asm volatile("r2 = r10; r2 += 24; r2 -= %0; r2 += -40; *(u8 *)(r2 + 0) = 3; r3 = r10; r3 -= r2; %0 = r3"
		     : "+r"(d) : : "r2", "r3", "memory");
	return end(d);
}

SEC("xdp") int frames_of_their_own(struct xdp_md *ctx)
{
	__u64 a[2] = {byte(ctx, 0), 1};
	struct cursor c = {(void *)a, (void *)a, (void *)(a + 2)};

	put(&c, 3);
	put(&c, 4);
	return end(a[0] + (c.at - c.begin) + (c.end - c.at) * 16);
}

SEC("xdp") int two_arrays(struct xdp_md *ctx)
{
	__u8 a[16] = {}, b[16] = {}, *p = byte(ctx, 0) & 1 ? a : b;
	int which;

	BARRIER(p);
	p[3] = 1;
	which = p == a;
	return end(a[3] + 2 * b[3] + 4 * which);
}

SEC("xdp") int sorted_by_address(struct xdp_md *ctx)
{
	__u32 a = byte(ctx, 0), b = byte(ctx, 1), *p = &a, *q = &b;

	BARRIER(p);
	BARRIER(q);
	if (p > q) {
		__u32 *t = p;

		p = q;
		q = t;
	}
	return end(((__u64)*p << 16 | *q) + ((void *)q - (void *)p));
}

SEC("xdp") int a_string_s_end(struct xdp_md *ctx)
{
	char s[12] = "hello, you", *p = s;

	BARRIER(p);
#pragma clang loop unroll(disable)
	while (p < s + 11 && *p && *p != ',')
		p++;
	return end(p - s);
}

SEC("xdp") int in_a_value(struct xdp_md *ctx)
{
	struct value *v = value_at(byte(ctx, 0) & 3);
	__u8 *p;

	if (!v)
		return XDP_ABORTED;
	p = v->bytes + (byte(ctx, 1) & 31);
	BARRIER(p);
	*p = p - v->bytes;
	v->bytes[63 - (p - v->bytes)]++;
	return end((p - v->bytes) * 256 + v->bytes[50]);
}

SEC("xdp") int walks_a_value(struct xdp_md *ctx)
{
	struct value *v = value_at(1);
	__u64 sum = 0;

	if (!v)
		return XDP_ABORTED;
	__u8 *p = v->bytes, *last = p + 64;

	BARRIER(last);
#pragma clang loop unroll(disable)
	for (; p < last; p++)
		sum = sum * 3 + *p;
	return end(sum);
}

SEC("xdp") int a_value_s_lower_half(struct xdp_md *ctx)
{
	struct value *v = value_at(2);
	__u8 *p;

	if (!v)
		return XDP_ABORTED;
	p = v->bytes + (byte(ctx, 0) & 7);
	BARRIER(p);
	return end((__u32)(long)p - (__u32)(long)v);
}

SEC("xdp") int in_a_record(struct xdp_md *ctx)
{
	__u8 *r = bpf_ringbuf_reserve(&ring, 16, 0), *p;

	if (!r)
		return XDP_ABORTED;
	__builtin_memset(r, 0, 16);
	p = r + (byte(ctx, 0) & 15);
	BARRIER(p);
	*p = p - r;
	r[15] = p < r + 8;
	bpf_ringbuf_submit(r, 0);
	return end(3);
}

SEC("xdp") int in_the_packet(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *last = (void *)(long)ctx->data_end, *p = data;
	__u64 n = 0;

#pragma clang loop unroll(disable)
	for (int i = 0; i < 40 && p < last; i++)
		n = n * 3 + *p++;
	return end(n + (p - data) * 100 + (last - p));
}

SEC("xdp") int metadata(struct xdp_md *ctx)
{
	__u8 *data, *meta;

	if (bpf_xdp_adjust_meta(ctx, -8))
		return end(1);
	data = (void *)(long)ctx->data;
	meta = (void *)(long)ctx->data_meta;
	if (meta + 8 > data)
		return end(2);
	meta[7] = 5;
	return end(data - meta);
}

SEC("xdp") int numbers_outlive_moves(struct xdp_md *ctx)
{
	long before = (__u8 *)(long)ctx->data_end - (__u8 *)(long)ctx->data;

	if (bpf_xdp_adjust_head(ctx, 4))
		return end(before);
	return end(before * 1000 + ((__u8 *)(long)ctx->data_end - (__u8 *)(long)ctx->data));
}

SEC("xdp") int a_distance_as_a_key(struct xdp_md *ctx)
{
	__u64 c[4] = {}, *p = c + (byte(ctx, 0) & 3);
	__u32 key;
	struct value *v;

	BARRIER(p);
	key = p - c;
	v = bpf_map_lookup_elem(&values, &key);
	if (!v)
		return XDP_ABORTED;
	v->bytes[0]++;
	return end(v->bytes[0] + 8 * key + c[1]);
}

SEC("xdp") int a_distance_as_a_size(struct xdp_md *ctx)
{
	__u8 b[32] = {}, *p = b + (byte(ctx, 0) & 15) + 1;
	long error;

	BARRIER(p);
	error = bpf_xdp_load_bytes(ctx, 0, b, p - b);
	return end(b[0] + 3 * b[5] + (error ? 7 : 0));
}

SEC("xdp") int a_distance_atomically(struct xdp_md *ctx)
{
	__u64 c[4] = {}, *p = c + (byte(ctx, 0) & 3), n = 5;

	BARRIER(p);
	__sync_fetch_and_add(&n, p - c);
	return end(n + c[2]);
}

NOINLINE long recursive_span(__u8 *outer)
{
	__u8 mine[16] = {}, *p = mine + (*outer & 15);

	BARRIER(p);
	*p = 1;
	return p - mine;
}

SEC("xdp") int a_callee_s_own(struct xdp_md *ctx)
{
	__u8 b[4] = {byte(ctx, 0)};

	return end(recursive_span(b) * 2 + recursive_span(b + 1));
}

static long round(__u32 i, __u64 **p)
{
	**p = i;
	*p += 1;
	return 0;
}

SEC("xdp") int called_back(struct xdp_md *ctx)
{
	__u64 c[8] = {}, *p = c;

	for (int i = 0; i < 6; i++)
		round(i, &p);
	return end((p - c) * 64 + c[5]);
}

SEC("xdp") int overlapping_load(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *last = (void *)(long)ctx->data_end;

	if (data + 40 > last)
		return end(1);
	return end(bpf_xdp_load_bytes(ctx, 0, data + 3, 24));
}

SEC("xdp") int overlapping_store(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *last = (void *)(long)ctx->data_end;

	if (data + 40 > last)
		return end(1);
	return end(bpf_xdp_store_bytes(ctx, 5, data, 24));
}

SEC("xdp") int null_and_not(struct xdp_md *ctx)
{
	struct value *v = value_at(byte(ctx, 0));
	__u64 c = 3, *p = byte(ctx, 1) > 70 ? &c : 0;

	BARRIER(p);
	return end((v ? 2 : 4) + (p ? *p : 8));
}

char _license[] SEC("license") = "GPL";
