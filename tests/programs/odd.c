/* Odd sizes: a key of 512 bytes, which only fits a map's value, values of 1, 3 and 5 bytes, keys of 7 and
 * 13. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

struct wide {
	__u8 bytes[512];
};

struct three {
	__u8 bytes[3];
};

struct seven {
	__u8 bytes[7];
};

struct thirteen {
	__u8 bytes[13];
};

MAP(scratch, ARRAY, 1, __u32, struct wide);
MAP(widest, HASH, 20, struct wide, __u8);
MAP(thirteens, HASH, 9, struct thirteen, struct three);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 5);
	__type(key, __u32);
	__uint(value_size, 5);
} fives SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 3);
	__type(key, struct seven);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_HASH);
		__uint(max_entries, 3);
		__type(key, struct three);
		__type(value, struct seven);
	});
} holders SEC(".maps");

SEC("xdp")
int odd(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct thirteen thirteen = {};
	struct three three = {}, *third;
	struct seven seven = {}, *found;
	struct wide *wide;
	__u8 *count, one = 1, *five;
	__u32 zero = 0, index;
	long result = 0;
	void *map;

	if (data + 48 > end)
		return XDP_PASS;
	wide = bpf_map_lookup_elem(&scratch, &zero);
	if (!wide)
		return XDP_ABORTED;
	/* First, last and middle bytes tell keys apart. */
	wide->bytes[0] = data[14] & 3;
	wide->bytes[255] = data[15] & 1;
	wide->bytes[511] = data[16] & 3;
	count = bpf_map_lookup_elem(&widest, wide);
	if (count)
		++*count;
	else
		result = bpf_map_update_elem(&widest, wide, &one, BPF_NOEXIST);
	if (data[17] > 240)
		result = bpf_map_delete_elem(&widest, wide);
	thirteen.bytes[0] = data[14] & 1;
	thirteen.bytes[12] = data[17] & 7;
	three.bytes[2] = data[18];
	third = bpf_map_lookup_elem(&thirteens, &thirteen);
	if (third)
		data[20] = third->bytes[2];
	else
		result += bpf_map_update_elem(&thirteens, &thirteen, &three, data[19] & 3);
	index = data[18] & 7;
	five = bpf_map_lookup_elem(&fives, &index);
	if (five) {
		five[4] += data[16];
		data[21] = five[4];
	}
	seven.bytes[6] = data[14] & 3;
	map = bpf_map_lookup_elem(&holders, &seven);
	if (map) {
		three.bytes[2] &= 3;
		found = bpf_map_lookup_elem(map, &three);
		if (found)
			data[22] = ++found->bytes[6];
		else
			result += bpf_map_update_elem(map, &three, &seven, 0);
	}
	__builtin_memcpy(data + 32, &result, sizeof(result));
	return result ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "GPL";
