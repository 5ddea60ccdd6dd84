/* A timer that the first packet starts and that goes on by itself: it counts, every ten milliseconds.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

struct clock {
	struct bpf_timer timer;
	__u64 ticks;
};

MAP(clocks, ARRAY, 1, __u32, struct clock);

#define PERIOD 10000000ull

static int tick(void *map, __u32 *index, struct clock *clock)
{
	(void)map;
	(void)index;
	clock->ticks++;
	bpf_timer_start(&clock->timer, PERIOD, 0);
	return 0;
}

SEC("xdp") int ticker(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct clock *clock = bpf_map_lookup_elem(&clocks, &zero);

	(void)ctx;
	/* -EBUSY once it is ready. */
	if (clock && !bpf_timer_init(&clock->timer, &clocks, 1)) {
		bpf_timer_set_callback(&clock->timer, tick);
		bpf_timer_start(&clock->timer, PERIOD, 0);
	}
	return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
