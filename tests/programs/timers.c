/* Timers in the values of maps, for comparison with the kernel: what the helpers return, in any order. The
 * packet says which of them is called, for which entry of which map; a timer is started for hours at least, so that none
 * fires in the test.
 */
#include <asm/errno.h>
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

#define RESULTS 16

MAP(results, ARRAY, RESULTS, __u32, __u64);

struct clocked {
	__u64 before;
	struct bpf_timer timer;
	__u32 after;
};

MAP(hashed, HASH, 8, __u32, struct clocked);
MAP(latest, LRU_HASH, 4096, __u32, struct clocked);
MAP(row, ARRAY, 4, __u32, struct clocked);

/* The kernel allocates a timer, and may fail to do so for a moment. */
#define INIT(timer, map, flags)                              \
	({                                                   \
		long result = bpf_timer_init(timer, map, flags); \
		for (int i = 0; i < 64 && result == -ENOMEM; i++) \
			result = bpf_timer_init(timer, map, flags); \
		result;                                      \
	})

#define HOUR 3600000000000ull

static int once(void *map, __u32 *key, struct clocked *value)
{
	(void)map;
	value->after += *key;
	return 0;
}

static int again(void *map, __u32 *key, struct clocked *value)
{
	(void)map;
	(void)key;
	value->before++;
	bpf_timer_start(&value->timer, HOUR, 0);
	return 0;
}

static __always_inline void put(__u32 at, __u64 value)
{
	bpf_map_update_elem(&results, &at, &value, BPF_ANY);
}

static __always_inline void call(void *map, const __u8 *p, __u32 base)
{
	__u32 key = p[1] & 7;
	struct clocked fresh;
	struct clocked *value;

	__builtin_memset(&fresh, 0xee, sizeof(fresh));
	fresh.before = p[4];
	fresh.after = p[5];
	switch (p[2] & 15) {
	case 0:
		put(base, bpf_map_delete_elem(map, &key));
		return;
	case 1:
	case 2:
		put(base, bpf_map_update_elem(map, &key, &fresh, p[3] & 3));
		return;
	}
	value = bpf_map_lookup_elem(map, &key);
	if (!value) {
		put(base, -ENOENT);
		bpf_map_update_elem(map, &key, &fresh, BPF_ANY);
		return;
	}
	value->after += 1;
	switch (p[2] & 15) {
	case 9:
	case 10:
		put(base + 1, bpf_timer_set_callback(&value->timer, once));
		break;
	case 11:
		put(base + 1, bpf_timer_set_callback(&value->timer, again));
		break;
	case 12:
	case 13:
	case 14:
		put(base + 2, bpf_timer_start(&value->timer, HOUR + p[3], p[4] & 3 ? 0 : p[3] & 4));
		break;
	case 15:
		put(base + 3, bpf_timer_cancel(&value->timer));
		break;
	}
}

SEC("xdp") int timers(struct xdp_md *ctx)
{
	__u8 *p = (void *)(long)ctx->data;
	__u32 key, which;
	struct clocked *value;

	if ((void *)(p + 14) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	key = p[1] & 7;
	which = p[0] % 3;
	/* A timer is made ready where its map is named. */
	if ((p[2] & 15) >= 3 && (p[2] & 15) <= 8) {
		__u64 clock = p[3] % 11;

		if (which == 0) {
			value = bpf_map_lookup_elem(&hashed, &key);
			if (value)
				put(12, INIT(&value->timer, &hashed, clock));
		} else if (which == 1) {
			value = bpf_map_lookup_elem(&latest, &key);
			if (value)
				put(13, INIT(&value->timer, &latest, clock));
		} else {
			value = bpf_map_lookup_elem(&row, &key);
			if (value)
				put(14, INIT(&value->timer, &row, clock));
		}
		return XDP_PASS;
	}
	if (which == 0)
		call(&hashed, p, 0);
	else if (which == 1)
		call(&latest, p, 4);
	else
		call(&row, p, 8);
	return XDP_TX;
}

char _license[] SEC("license") = "GPL";
