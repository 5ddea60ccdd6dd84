/* What would tell where the host put something: refused, each with this rule. tests/tests/places.rs reads the rule's name
 * from the function's, up to the two underscores. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define NOINLINE static __attribute__((noinline))
#define BARRIER(x) asm volatile("" : "+r"(x))

struct bpf_iter_num;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
struct iterator {
	__u64 state;
} __attribute__((aligned(8)));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u64);
	__type(value, __u64[4]);
} table SEC(".maps"), other SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} ring SEC(".maps");

__u64 global[4], second[4];

#define FIND(p, map, key) \
	__u64 k_##p = (key), *p = bpf_map_lookup_elem(&map, &k_##p); \
	if (!p) \
		return 0

#define PROGRAM(name) SEC("xdp") int name(struct xdp_md *ctx)

PROGRAM(pointer_arithmetic__maps) { return (__u64)&table - (__u64)&other; }
PROGRAM(pointer_arithmetic__one_map)
{
	void *p = &table, *q = &table;

	BARRIER(p);
	BARRIER(q);
	return p - q;
}
PROGRAM(pointer_arithmetic__entries)
{
	FIND(p, table, 1);
	FIND(q, table, 2);
	return p - q;
}
PROGRAM(pointer_arithmetic__entries_of_two_maps)
{
	FIND(p, table, 1);
	FIND(q, other, 1);
	return p - q;
}
PROGRAM(pointer_arithmetic__value_and_stack)
{
	FIND(p, table, 1);
	return p - &k_p;
}
PROGRAM(pointer_arithmetic__packet_and_stack)
{
	__u64 x = 1;

	BARRIER(ctx);
	return (__u8 *)&x - (__u8 *)(long)ctx->data;
}
PROGRAM(pointer_arithmetic__packet_and_global) { return (__u8 *)global - (__u8 *)(long)ctx->data; }
PROGRAM(pointer_arithmetic__context_and_stack)
{
	__u64 x = 1;

	return (__u8 *)ctx - (__u8 *)&x;
}
PROGRAM(pointer_arithmetic__alignment)
{
	FIND(p, table, 1);
	return (__u64)p & 63;
}
PROGRAM(pointer_arithmetic__hashed)
{
	FIND(p, table, 1);
	return ((__u64)p * 0x9e3779b97f4a7c15) >> 60;
}
PROGRAM(pointer_arithmetic__exclusive_or)
{
	FIND(p, table, 1);
	FIND(q, table, 2);
	return (__u64)p ^ (__u64)q;
}
PROGRAM(pointer_arithmetic__negated)
{
	void *p = ctx;

	asm volatile("%0 = -%0" : "+r"(p));
	return (__u64)p;
}
PROGRAM(pointer_arithmetic__swapped)
{
	void *p = ctx;

	asm volatile("%0 = be64 %0" : "+r"(p));
	return (__u64)p;
}
PROGRAM(pointer_arithmetic__lower_half_of_a_map)
{
	__u64 x;

	asm volatile("r2 = %1; w2 = w2; %0 = r2" : "=r"(x) : "r"(&table) : "r2");
	return x;
}
PROGRAM(pointer_arithmetic__sign_extended)
{
	__u64 x;

	asm volatile("r2 = (s32)%1; %0 = r2" : "=r"(x) : "r"(ctx) : "r2");
	return x;
}
PROGRAM(pointer_arithmetic__shifted)
{
	__u64 x;

	asm volatile("r2 = r10; r2 >>= 12; %0 = r2" : "=r"(x) : : "r2");
	return x;
}
PROGRAM(pointer_arithmetic__two_records)
{
	__u8 *p = bpf_ringbuf_reserve(&ring, 8, 0), *q;
	volatile long d;

	if (!p)
		return 0;
	q = bpf_ringbuf_reserve(&ring, 8, 0);
	if (!q) {
		bpf_ringbuf_discard(p, 0);
		return 0;
	}
	d = q - p;
	bpf_ringbuf_discard(p, 0);
	bpf_ringbuf_discard(q, 0);
	return d;
}
NOINLINE long distance(__u64 *p)
{
	__u64 mine = *p;

	return p - &mine;
}
PROGRAM(pointer_arithmetic__two_frames)
{
	__u64 x = ctx->ingress_ifindex;

	return distance(&x);
}
PROGRAM(pointer_comparison__entries_are_one)
{
	FIND(p, table, 1);
	FIND(q, table, ctx->ingress_ifindex);
	return p == q;
}
PROGRAM(pointer_comparison__entries_in_order)
{
	FIND(p, table, 1);
	FIND(q, table, 2);
	return p < q;
}
PROGRAM(pointer_comparison__value_and_global)
{
	FIND(p, table, 1);
	return p < global;
}
PROGRAM(pointer_comparison__packet_and_value)
{
	FIND(p, table, 1);
	return (void *)(long)ctx->data < (void *)p;
}
PROGRAM(pointer_comparison__bits)
{
	void *p = (void *)(long)ctx->data;
	int r;

	asm volatile("%0 = 1; if %1 & 64 goto +1; %0 = 0" : "=&r"(r) : "r"(p));
	return r;
}
PROGRAM(pointer_comparison__common_bits)
{
	void *p = (void *)(long)ctx->data, *q = (void *)(long)ctx->data_end;
	int r;

	asm volatile("%0 = 1; if %1 & %2 goto +1; %0 = 0" : "=&r"(r) : "r"(p), "r"(q));
	return r;
}
PROGRAM(pointer_comparison__with_a_number)
{
	int r;

	asm volatile("%0 = 1; if r10 > 4096 goto +1; %0 = 0" : "=&r"(r));
	return r;
}
PROGRAM(pointer_comparison__lower_halves)
{
	__u64 x;
	int r;

	asm volatile("r2 = r10; r2 += -8; %0 = 1; if w2 < w10 goto +1; %0 = 0" : "=&r"(r) : : "r2");
	return r;
}
NOINLINE int older(__u64 *p)
{
	__u64 mine = *p;

	return p > &mine;
}
PROGRAM(pointer_comparison__two_frames)
{
	__u64 x = ctx->ingress_ifindex;

	return older(&x);
}
PROGRAM(pointer_leak__into_a_value)
{
	FIND(p, table, 1);
	p[0] = (__u64)p;
	return 0;
}
PROGRAM(pointer_leak__into_the_packet)
{
	__u64 *p = (void *)(long)ctx->data;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return 0;
	*p = (__u64)ctx;
	return 0;
}
PROGRAM(pointer_leak__into_a_record)
{
	__u64 *r = bpf_ringbuf_reserve(&ring, 8, 0);

	if (!r)
		return 0;
	*r = (__u64)r;
	bpf_ringbuf_submit(r, 0);
	return 0;
}
PROGRAM(partial_pointer__printed)
{
	static const char format[] = "%llx";
	__u64 data[1];
	char text[32];

	*(void *volatile *)data = ctx;
	return bpf_snprintf(text, 32, format, data, 8);
}
PROGRAM(partial_pointer__as_a_key)
{
	__u64 key;

	*(void *volatile *)&key = ctx;
	return bpf_map_lookup_elem(&table, &key) != 0;
}
PROGRAM(partial_pointer__as_a_record)
{
	__u64 key;

	*(void *volatile *)&key = &global;
	return bpf_ringbuf_output(&ring, &key, 8, 0);
}
PROGRAM(partial_pointer__a_byte_of_it)
{
	void *volatile p = ctx;

	return *(volatile __u8 *)&p;
}
PROGRAM(partial_pointer__checksum)
{
	__u64 key;

	*(void *volatile *)&key = ctx;
	return bpf_csum_diff(0, 0, (void *)&key, 8, 0);
}
PROGRAM(atomic__a_pointer_added)
{
	__u64 x = 0;

	__sync_fetch_and_add(&x, (__u64)ctx);
	return x;
}
PROGRAM(partial_pointer__atomic_on_a_pointer)
{
	void *volatile p = ctx;

	return __sync_fetch_and_add((__u64 *)&p, 1);
}
PROGRAM(helper_argument__as_a_number) { return bpf_redirect((__u64)ctx, 0); }
PROGRAM(pointer_return__itself) { return (long)ctx->data; }
PROGRAM(iterator__state_written)
{
	struct iterator it;
	int *p, n = 0;

	bpf_iter_num_new((void *)&it, 0, 4);
	while ((p = bpf_iter_num_next((void *)&it))) {
		*(volatile __u64 *)&it.state = 0x300000000;
		n += *p;
	}
	bpf_iter_num_destroy((void *)&it);
	return n;
}
PROGRAM(iterator__state_read)
{
	struct iterator it;
	int *p, n = 0;

	bpf_iter_num_new((void *)&it, 0, 4);
	while ((p = bpf_iter_num_next((void *)&it)))
		n += *(volatile __u32 *)&it.state;
	bpf_iter_num_destroy((void *)&it);
	return n;
}
PROGRAM(iterator__number_written)
{
	struct iterator it;
	int *p, n = 0;

	bpf_iter_num_new((void *)&it, 0, 4);
	while ((p = bpf_iter_num_next((void *)&it)))
		*p = n++;
	bpf_iter_num_destroy((void *)&it);
	return n;
}
PROGRAM(iterator__beyond_its_number)
{
	struct iterator it;
	int *p, n = 0;

	bpf_iter_num_new((void *)&it, 0, 4);
	while ((p = bpf_iter_num_next((void *)&it)))
		n += p[1];
	bpf_iter_num_destroy((void *)&it);
	return n;
}
PROGRAM(iterator__filled_by_a_helper)
{
	struct iterator it;
	int *p, n = 0;

	bpf_iter_num_new((void *)&it, 0, 4);
	while ((p = bpf_iter_num_next((void *)&it)))
		n += bpf_xdp_load_bytes(ctx, 0, &it, 8);
	bpf_iter_num_destroy((void *)&it);
	return n;
}
NOINLINE int begins(int n)
{
	struct iterator it;

	return bpf_iter_num_new((void *)&it, 0, n);
}
PROGRAM(iterator__left_in_a_function) { return begins(ctx->ingress_ifindex); }

char _license[] SEC("license") = "GPL";
