/* What the bodies of xdp.cases stand in: an object of each kind, and an IPv4 packet without options. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>

struct counts {
	__u64 packets;
	__u64 bytes;
};

struct entry {
	__u32 action; /* set by the host */
	__u32 packets;
	__u64 bytes;
	__u64 last;
};

struct packed {
	__u8 tag;
	__u64 packets;
	__u32 bytes;
} __attribute__((packed));

#define OBJECT(name, kind, entries, k, v)                                                          \
	struct {                                                                                   \
		__uint(type, kind);                                                                \
		__uint(max_entries, entries);                                                      \
		__type(key, k);                                                                    \
		__type(value, v);                                                                  \
	} name SEC(".maps")

#define PLAIN(name, kind, entries, v)                                                              \
	struct {                                                                                   \
		__uint(type, kind);                                                                \
		__uint(max_entries, entries);                                                      \
		__type(value, v);                                                                  \
	} name SEC(".maps")

struct prefix {
	__u32 bits;
	__u32 address;
};

OBJECT(array, BPF_MAP_TYPE_ARRAY, 256, __u32, struct entry);
OBJECT(hash, BPF_MAP_TYPE_HASH, 1024, __u32, struct entry);
OBJECT(other, BPF_MAP_TYPE_HASH, 1024, __u32, __u64);
OBJECT(lru, BPF_MAP_TYPE_LRU_HASH, 1024, __u32, struct counts);
OBJECT(stats, BPF_MAP_TYPE_PERCPU_ARRAY, 256, __u32, struct counts);
OBJECT(heap, BPF_MAP_TYPE_PERCPU_ARRAY, 1, __u32, struct entry);
OBJECT(cpuhash, BPF_MAP_TYPE_PERCPU_HASH, 1024, __u32, struct entry);
OBJECT(packed, BPF_MAP_TYPE_ARRAY, 8, __u32, struct packed);
OBJECT(ports, BPF_MAP_TYPE_DEVMAP, 8, __u32, __u32);
OBJECT(sockets, BPF_MAP_TYPE_XSKMAP, 64, __u32, __u32);
OBJECT(cpus, BPF_MAP_TYPE_CPUMAP, 64, __u32, __u32);
PLAIN(queue, BPF_MAP_TYPE_QUEUE, 64, __u32);
PLAIN(bloom, BPF_MAP_TYPE_BLOOM_FILTER, 64, __u32);

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, struct entry);
} routes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 64);
	__uint(key_size, 4);
	__uint(value_size, 4);
} perf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__uint(key_size, 4);
	__uint(value_size, 4);
} programs SEC(".maps");

static __u64 n; /* the one in .bss */

char _license[] SEC("license") = "GPL";

#define LOOKUP(map, key) bpf_map_lookup_elem(&map, &key)

static __always_inline int body(struct xdp_md *ctx, __u8 *data, __u8 *end, __u32 source);

SEC("xdp")
int program(struct xdp_md *ctx)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;

	if (data + 34 > end)
		return XDP_DROP;
	if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP) || data[14] != 0x45)
		return XDP_PASS;
	return body(ctx, data, end, *(__u32 *)(data + 26));
}

static __always_inline int body(struct xdp_md *ctx, __u8 *data, __u8 *end, __u32 source)
{
	__u32 zero = 0, one = 1, length = end - data;
