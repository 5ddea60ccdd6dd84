/* A queue, a stack and a Bloom filter: what the packet's bytes say is done to them, and what came of it is
 * written into the packet. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct item {
	__u32 number;
	__u8 rest[7];
} __attribute__((packed));

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 5);
	__uint(value_size, 11);
} queue SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 4);
	__type(value, struct item);
} stack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
	__uint(max_entries, 10000);
	__type(value, struct item);
	__uint(map_extra, 7);
} seen SEC(".maps");

/* Keeps the compiler from making one call of two, which would then work on different maps. */
#define APART(number) asm volatile("" :: "i"(number))

SEC("xdp")
int sequences(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct item item = {};
	long result = 0;
	__u64 flags;

	if (data + 48 > end)
		return XDP_PASS;
	flags = data[15];
	/* Few different values, so that the filter sees some twice. */
	item.number = data[16] & 31;
	__builtin_memcpy(item.rest, data + 17, 1);
	switch (data[14] & 15) {
	case 0:
	case 1:
		result = bpf_map_push_elem(&queue, &item, flags);
		APART(1);
		break;
	case 2:
		result = bpf_map_push_elem(&stack, &item, flags);
		APART(2);
		break;
	case 3:
		result = bpf_map_push_elem(&seen, &item, flags & 15 ? 0 : flags);
		APART(3);
		break;
	case 4:
		result = bpf_map_pop_elem(&queue, &item);
		APART(4);
		break;
	case 5:
		result = bpf_map_pop_elem(&stack, &item);
		APART(5);
		break;
	case 6:
		result = bpf_map_peek_elem(&seen, &item);
		APART(6);
		break;
	case 7:
		result = bpf_map_peek_elem(&queue, &item);
		APART(7);
		break;
	case 8:
		result = bpf_map_peek_elem(&stack, &item);
		APART(8);
		break;
	}
	__builtin_memcpy(data + 20, &item, sizeof(item));
	__builtin_memcpy(data + 32, &result, sizeof(result));
	return result ? XDP_DROP : XDP_TX;
}

char _license[] SEC("license") = "GPL";
