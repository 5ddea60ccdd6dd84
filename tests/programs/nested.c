/* Maps of maps: whose maps they are the packet says. One outer map holds maps of the file, one is filled
 * from outside. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "map.h"

struct counts {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
};

struct counts red SEC(".maps"), green SEC(".maps");

/* Like the others, with room for more. */
MAP(blue, HASH, 50, __u32, __u64);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 6);
	__type(key, __u32);
	__array(values, struct counts);
} colours SEC(".maps") = { .values = { &red, 0, &green, (void *)&blue, &red } };

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 4);
	__uint(key_size, 2);
	__uint(value_size, 4);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 4);
		__uint(key_size, 4);
		__uint(value_size, 4);
	});
} tenants SEC(".maps");

SEC("xdp")
int nested(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 colour, key, *limit;
	__u64 one = 1, *count;
	long result = 0;
	__u16 tenant;
	void *map;

	if (data + 48 > end)
		return XDP_PASS;
	colour = data[14] & 7;
	key = data[15] & 15;
	map = bpf_map_lookup_elem(&colours, &colour);
	if (map) {
		count = bpf_map_lookup_elem(map, &key);
		if (count) {
			result = ++*count;
			if (data[16] > 250)
				result = bpf_map_delete_elem(map, &key);
		} else {
			result = bpf_map_update_elem(map, &key, &one, data[16] & 3);
		}
	}
	__builtin_memcpy(data + 32, &result, sizeof(result));
	tenant = data[17] & 3;
	key = data[18] & 7;
	map = bpf_map_lookup_elem(&tenants, &tenant);
	if (!map)
		return XDP_DROP;
	limit = bpf_map_lookup_elem(map, &key);
	if (!limit)
		return XDP_ABORTED;
	if (*limit == 0)
		return XDP_PASS;
	--*limit;
	return XDP_TX;
}

char _license[] SEC("license") = "GPL";
