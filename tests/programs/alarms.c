/* Timers in the values of maps that fire: by the packet's bytes they are set to functions that count, start
 * their timer again, delete or overwrite their entry, set another function, or touch another map's timers. Every
 * firing is written down with its time: a chain of which each link depends on all before.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

MAP(chain, ARRAY, 4, __u32, __u64);

struct flow {
	__u64 seen;
	__u32 fired;
	__u32 period;
	struct bpf_timer timer;
	__u64 last;
};

MAP(flows, HASH, 64, __u64, struct flow);

struct clock {
	struct bpf_timer timer;
	__u64 ticks;
};

MAP(clocks, ARRAY, 3, __u32, struct clock);

static __always_inline void note(__u64 what)
{
	__u32 zero = 0, one = 1;
	__u64 *link = bpf_map_lookup_elem(&chain, &zero);
	__u64 *count = bpf_map_lookup_elem(&chain, &one);

	if (!link || !count)
		return;
	*link = (*link ^ what ^ bpf_ktime_get_ns()) * 0x9e3779b97f4a7c15ull + *count;
	*count += 1;
}

static int tick(void *map, __u32 *index, struct clock *clock)
{
	(void)map;
	note(*index << 8 | 1);
	clock->ticks++;
	/* The middle one stops itself now and then, which it may not: it is running. */
	if (*index == 1 && clock->ticks % 5 == 0)
		note(bpf_timer_cancel(&clock->timer));
	bpf_timer_start(&clock->timer, *index ? 1000 << *index : clock->ticks % 3 ? 0 : 700, 0);
	return 0;
}

static int expire(void *map, __u64 *key, struct flow *flow)
{
	__u64 idle = bpf_ktime_get_ns() - flow->last;

	note(*key << 8 | 2);
	flow->fired++;
	if (idle < flow->period) {
		bpf_timer_start(&flow->timer, flow->period - idle, 0);
		return 0;
	}
	bpf_map_delete_elem(map, key);
	/* The entry has gone, and its timer with it. */
	note(bpf_timer_start(&flow->timer, 5, 0));
	note(*key);
	return 0;
}

static int replace(void *map, __u64 *key, struct flow *flow)
{
	struct flow fresh;

	note(*key << 8 | 3);
	__builtin_memset(&fresh, 0, sizeof(fresh));
	fresh.seen = flow->seen;
	fresh.fired = flow->fired + 1;
	bpf_map_update_elem(map, key, &fresh, BPF_EXIST);
	return 0;
}

static int change(void *map, __u64 *key, struct flow *flow)
{
	__u32 index = *key & 1;
	struct clock *clock = bpf_map_lookup_elem(&clocks, &index);

	(void)map;
	note(*key << 8 | 4);
	bpf_timer_set_callback(&flow->timer, *key & 2 ? expire : replace);
	bpf_timer_start(&flow->timer, bpf_ktime_get_ns() + 300 + index, 1);
	if (clock)
		note(bpf_timer_cancel(&clock->timer));
	return 0;
}

SEC("xdp") int alarms(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data;
	struct flow fresh, *flow;
	struct clock *clock;
	__u32 index;
	__u64 key;

	if ((void *)(p + 14) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	key = p[0] & 31;
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		__builtin_memset(&fresh, 0, sizeof(fresh));
		fresh.period = 200 + p[1] * 16;
		bpf_map_update_elem(&flows, &key, &fresh, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&flows, &key);
		if (!flow)
			return XDP_DROP;
	}
	flow->seen++;
	flow->last = bpf_ktime_get_ns();
	index = p[2] % 5;
	clock = bpf_map_lookup_elem(&clocks, &index);
	if (clock && p[3] < 40) {
		bpf_timer_init(&clock->timer, &clocks, 1);
		bpf_timer_set_callback(&clock->timer, tick);
		bpf_timer_start(&clock->timer, 100 + p[4], 0);
	}
	if (bpf_timer_init(&flow->timer, &flows, 1) == 0) {
		if (p[5] < 60)
			bpf_timer_set_callback(&flow->timer, change);
		else if (p[5] < 100)
			bpf_timer_set_callback(&flow->timer, replace);
		else
			bpf_timer_set_callback(&flow->timer, expire);
	} else if (p[5] > 200) {
		note(bpf_timer_cancel(&flow->timer));
		bpf_timer_set_callback(&flow->timer, expire);
	}
	note(bpf_timer_start(&flow->timer, 200 + p[1] * 16, 0));
	return flow->fired & 1 ? XDP_TX : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
