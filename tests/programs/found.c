/* Calls that work on a map found in a map of maps or, where none is there, on one of the file's own: the way
 * load balancers keep a table for each CPU with one to fall back on. And visits of one of three maps. What the
 * packet's bytes say chooses.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

struct counts {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u64);
};

struct counts red SEC(".maps"), green SEC(".maps"), fallback SEC(".maps");

/* Another kind, larger values. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 6);
	__type(key, __u32);
	__uint(value_size, 16);
} last SEC(".maps");

/* The fallback map is also one of those that can be found. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 5);
	__type(key, __u32);
	__array(values, struct counts);
} colours SEC(".maps") = { .values = { &red, &green, 0, (void *)&fallback } };

MAP(sums, ARRAY, 8, __u32, __u64);

static long add(void *map, const __u32 *key, __u64 *value, void *context)
{
	__u64 *sum = context;

	*sum += *key * 5 + *value;
	if (*value > 6)
		bpf_map_delete_elem(map, key);
	return 0;
}

SEC("xdp") int found(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 one[2] = { 1, 1 }, sum = 0, *value;
	__u32 colour, key, at = 0;
	void *map, *visited;
	long result = 0;

	if (data + 48 > end)
		return XDP_PASS;
	colour = data[14] & 7;
	key = data[15] & 7;
	map = bpf_map_lookup_elem(&colours, &colour);
	if (!map)
		map = data[16] & 1 ? (void *)&fallback : (void *)&last;
	/* The ways meet before what follows. */
	if (data[17] > 200)
		data[18] = 0;
	value = bpf_map_lookup_elem(map, &key);
	if (value)
		result = ++*value;
	else
		result = bpf_map_update_elem(map, &key, one, data[19] & 3);
	__builtin_memcpy(data + 32, &result, sizeof(result));
	visited = &red;
	if (data[20] & 1)
		visited = &green;
	if (data[20] & 2)
		visited = &last;
	if (data[17] > 100)
		data[18] = 1;
	result = bpf_for_each_map_elem(visited, add, &sum, 0);
	__builtin_memcpy(data + 24, &result, sizeof(result));
	at = data[20] & 3;
	bpf_map_update_elem(&sums, &at, &sum, BPF_ANY);
	return value ? XDP_TX : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
