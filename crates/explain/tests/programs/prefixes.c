// Prefixes of several lengths, which packets add, find and take out.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

struct prefix {
	__u32 bits;
	__u32 address;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__type(key, struct prefix);
	__type(value, __u32);
	__uint(max_entries, 32);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} seen SEC(".maps");

SEC("xdp")
int prefixes(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct prefix key = { 32 };
	__u32 *value, one = 1;

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	key.address = ip->daddr;
	value = bpf_map_lookup_elem(&seen, &key);
	if (value && *value & 1) {
		*value += 1;
		// Whatever found it, this is the prefix of 32 bits: mostly there is none.
		bpf_map_delete_elem(&seen, &key);
		return XDP_TX;
	}
	key.bits = value ? 32 : 20 + (bpf_ntohl(ip->daddr) & 7);
	bpf_map_update_elem(&seen, &key, &one, BPF_ANY);
	return value ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
