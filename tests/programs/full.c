/* Full LRU maps, random draws and records, for comparison of emitted code with the interpreter: which entry
 * goes, and what is drawn, are this project's own definitions.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "map.h"

MAP(recent, LRU_HASH, 5, __u32, __u64);
MAP(mine, LRU_PERCPU_HASH, 70, __u16, __u64);
MAP(sums, PERCPU_ARRAY, 3, __u32, __u64);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

SEC("xdp") int full(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 one = 1, *value, *second, draws[2];
	__u32 key, other;
	__u16 narrow;
	long result = 0;

	if (data + 48 > end)
		return XDP_DROP;
	key = data[14] & 15;
	other = data[15] & 15;
	narrow = data[16];
	value = bpf_map_lookup_elem(&recent, &key);
	if (value)
		++*value;
	else
		result = bpf_map_update_elem(&recent, &key, &one, data[17] & 3);
	if (data[18] > 240)
		result += bpf_map_delete_elem(&recent, &other);
	/* Another insertion may put its value where this one is. */
	value = bpf_map_lookup_elem(&recent, &key);
	one = 100 + data[19];
	if (data[18] & 1)
		result += bpf_map_update_elem(&recent, &other, &one, BPF_ANY);
	if (value)
		result += *value * 1000;
	second = bpf_map_lookup_percpu_elem(&mine, &narrow, data[20] & 1);
	if (second)
		++*second;
	else
		bpf_map_update_elem(&mine, &narrow, &one, BPF_ANY);
	key = data[21] & 3;
	value = bpf_map_lookup_percpu_elem(&sums, &key, 0);
	if (value)
		*value += data[22];
	draws[0] = bpf_get_prandom_u32();
	draws[1] = bpf_get_prandom_u32();
	if (data[23] & 1)
		result += bpf_ringbuf_output(&events, draws, sizeof(draws), data[23] >> 5);
	__builtin_memcpy(data + 24, draws, sizeof(draws));
	__builtin_memcpy(data + 40, &result, sizeof(result));
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
