/* Clang keeps the packet's end in the stack over the loop: what is read of it behind the first access to state is all eight bytes of an
 * address. Drawn by tests/src/stateful/replicas.rs. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct mac6 { __u8 bytes[6]; };
struct v2 { __u64 t; __u64 a; __u64 b; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, struct v2);
} m2 SEC(".maps");

struct v3 { __u64 t; __u64 a; __u64 b; };
struct inner3 {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct v3);
} n3 SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct inner3);
} m3 SEC(".maps") = { .values = { &n3 } };

struct v4 { __u64 t; __u32 a; __u32 b; };
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct v4);
} m4 SEC(".maps");

SEC("xdp")
int function(struct xdp_md *ctx)
{
	__u32 in = ctx->ingress_ifindex - 1;
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (data + 34 > end)
		return XDP_PASS;
	__u32 src = data[11], dst = data[5], proto = data[12], ttl = data[13];
	__u16 sport = 0, dport = 0;
	__u64 now = bpf_ktime_get_ns() >> 10, len = end - data;
	int verdict = XDP_PASS, out = 2 - in;
	__u64 r0 = 0, r1 = 0, r2 = 0;

	{
		__u32 k0 = src;
		#pragma clang loop unroll(disable)
		for (int n = 0; n < 8; n++)
			k0 = k0 * 31 + data[n];
		k0 &= 63;
		struct v4 *v = bpf_map_lookup_elem(&m4, &k0);
		if (!v) {
			struct v4 fresh = { .a = 1 };
			bpf_map_update_elem(&m4, &k0, &fresh, BPF_NOEXIST);
		} else {
			r0 = v->a;
			v->a = r0 + 1;
		}
	}
	{
		__u32 k1 = (src) & 3;
		struct v2 *v = bpf_map_lookup_elem(&m2, &k1);
		if (v) {
			if (now - v->t > 300000) {
				v->t = now;
				v->a = 0;
			}
			v->a++;
			r1 = v->a;
		}
	}
	{
		__u32 k2 = (src) & 0;
		__u32 zero = 0;
		void *inner = bpf_map_lookup_elem(&m3, &zero);
		if (!inner)
			return XDP_ABORTED;
		struct v3 *v = bpf_map_lookup_elem(inner, &k2);
		if (v) {
			r2 = __sync_fetch_and_add(&v->t, len);
		}
	}
	return verdict == XDP_REDIRECT ? bpf_redirect(out, 0) : verdict;
}

char _license[] SEC("license") = "GPL";
