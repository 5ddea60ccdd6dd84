/* An array of programs, whose entries are not listed, beside a table that is divided, and a ring of records. */
#include "part.h"

int second(struct xdp_md *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__array(values, int(struct xdp_md *));
} jumps SEC(".maps") = { .values = { [0] = (void *)&second } };

TABLE(hosts, BPF_MAP_TYPE_HASH, __u64, 1024);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} records SEC(".maps");

SEC("xdp") int second(struct xdp_md *ctx)
{
	int host = source(ctx);
	__u32 key = host, *record;
	__u64 one = 1, *n;

	if (host < 0)
		return XDP_PASS;
	n = bpf_map_lookup_elem(&hosts, &key);
	if (!n) {
		bpf_map_update_elem(&hosts, &key, &one, BPF_ANY);
		return XDP_TX;
	}
	*n += 1;
	if (*n < 4)
		return XDP_TX;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (record) {
		*record = key;
		bpf_ringbuf_submit(record, 0);
	}
	return XDP_DROP;
}

SEC("xdp") int first(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &jumps, 0);
	return XDP_ABORTED;
}
