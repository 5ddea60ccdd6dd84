/* Calls whose map depends on the way to them: clang makes one call of those in different branches, with the
 * map in a register. The maps differ in kind and in the sizes of keys and values. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

int dropped(struct xdp_md *ctx);
int sent(struct xdp_md *ctx);

struct key4 {
	__u32 address;
};

struct key6 {
	__u32 address[4];
};

struct short_value {
	__u64 packets;
};

struct long_value {
	__u64 packets;
	__u64 bytes;
	__u32 last;
	__u32 none;
};

MAP(four, HASH, 40, struct key4, struct short_value);
MAP(six, HASH, 50, struct key6, struct long_value);

struct counts {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 30);
	__type(key, __u32);
	__type(value, __u64);
};

struct counts first SEC(".maps"), second SEC(".maps");

MAP(third, ARRAY, 12, __u32, __u64);

struct programs {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
};

struct programs low SEC(".maps") = { .values = { [1] = (void *)&dropped } };
struct programs high SEC(".maps") = { .values = { [0] = (void *)&sent, [2] = (void *)&dropped } };

MAP(ports, DEVMAP, 4, __u32, __u32);
MAP(hashed, DEVMAP_HASH, 4, __u32, __u32);

/* The map in a register, however much the compiler sees. */
#define HIDDEN(map) ({ void *chosen = map; __asm__ volatile("" : "+r"(chosen)); chosen; })

static __always_inline void *counts_of(__u8 which)
{
	return which == 0 ? (void *)&first : which == 1 ? (void *)&second : (void *)&third;
}

/* Keys, values and what a lookup gives are as long as the map at hand has them. */
static __always_inline __u64 address(__u8 *packet)
{
	struct short_value none4 = { .packets = 1 };
	struct long_value none6 = { .packets = 1, .bytes = 60, .last = 7 };
	union {
		struct key4 four;
		struct key6 six;
	} key = {};
	__u64 longer = packet[17] & 1, *packets;
	void *map, *none;

	key.six.address[0] = packet[16] & 63;
	if (longer) {
		key.six.address[2] = packet[18] & 1;
		map = HIDDEN(&six);
		none = HIDDEN(&none6);
	} else {
		map = HIDDEN(&four);
		none = HIDDEN(&none4);
	}
	packets = bpf_map_lookup_elem(map, &key);
	if (packets) {
		*packets += 1;
		if (longer)
			packets[1] += packet[19];
		if ((packet[18] & 15) == 3)
			return bpf_map_delete_elem(map, &key);
		return *packets;
	}
	return bpf_map_update_elem(map, &key, none, BPF_NOEXIST);
}

static __noinline int count(__u8 which, __u32 key)
{
	void *map = HIDDEN(counts_of(which));
	__u64 one = 1, *n;

	for (int i = 0; i < 3; i++) {
		n = bpf_map_lookup_elem(map, &key);
		if (n)
			*n += 1;
		else if (bpf_map_update_elem(map, &key, &one, BPF_ANY))
			return i;
		/* The other one in the next round. */
		map = HIDDEN(counts_of((which + i) & 3));
	}
	if (key == 5)
		bpf_map_delete_elem(map, &key);
	return 3;
}

SEC("xdp") int either(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 result;
	__u32 index;
	void *map;

	if (data + 48 > end)
		return XDP_PASS;
	result = address(data);
	result = result * 5 + count(data[20] & 3, data[21] & 31);
	__builtin_memcpy(data + 32, &result, sizeof(result));
	index = data[22] & 7;
	map = data[23] & 1 ? (void *)&low : (void *)&high;
	bpf_tail_call(ctx, HIDDEN(map), index);
	/* Nobody sets an entry, so this gives its flags. */
	map = index & 1 ? HIDDEN(&ports) : HIDDEN(&hashed);
	return bpf_redirect_map(map, index, index & 1 ? XDP_PASS : XDP_ABORTED);
}

SEC("xdp") int dropped(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

SEC("xdp") int sent(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_TX;
}

char _license[] SEC("license") = "GPL";
