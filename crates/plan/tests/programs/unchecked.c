/* Ordinary XDP: it looks at the EtherType and takes what follows for a header, whatever that says of itself. */
#include "../../../model/tests/programs/kernel.h"

#define STEP 0 /* with 1: over VLAN tags */
#define KNOWN (1) /* what else is looked at in the header, which begins at ip */
#define TRANSPORT (ip + 20) /* where ports are taken from */
#define KEY { key.words[0] = WORD(ip, 12); }
#define ZONED 0 /* with 1: a table says what zone the protocol is of */
#define SIX 0 /* with 1: IPv6 is looked at instead */

#define BYTE(p, at) (*(__u8 *)((p) + (at)))
#define HALF(p, at) (*(__u16 *)((p) + (at)))
#define WORD(p, at) (*(__u32 *)((p) + (at)))

struct key {
	__u32 words[5];
};

struct {
	__uint(type, HASH);
	__uint(max_entries, 64);
	__type(key, struct key);
	__type(value, __u64);
} counts SEC(".maps");

/* What the host says of a protocol. */
struct {
	__uint(type, HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} zones SEC(".maps");

SEC("xdp")
int program(struct xdp_md *ctx)
{
	__u8 *begin = BEGIN(ctx), *end = END(ctx), *ip, *l4;
	struct key key = {};
	__u64 one = 1, *count;
	__u32 protocol, *zone;
	__u16 type;

	ip = begin + 14;
	if (ip > end)
		return XDP_PASS;
	type = HALF(begin, 12);
	if (STEP) {
		for (int i = 0; i < 2; i++) {
			if (type != 0x0081 && type != 0xa888)
				break;
			if (ip + 4 > end)
				return XDP_PASS;
			type = HALF(ip, 2);
			ip += 4;
		}
	}
	if (type != (SIX ? 0xdd86 : 0x0008) || ip + (SIX ? 40 : 20) > end)
		return XDP_PASS;
	if (!(KNOWN))
		return XDP_PASS;
	l4 = TRANSPORT;
	if (l4 + 4 > end)
		return XDP_PASS;
	protocol = BYTE(ip, 9);
	zone = ZONED ? lookup(&zones, &protocol) : &protocol;
	if (!zone)
		return XDP_PASS;
	KEY;
	count = lookup(&counts, &key);
	if (!count) {
		update(&counts, &key, &one, BPF_ANY);
		return XDP_PASS;
	}
	*count += 1;
	return *count > 100 ? XDP_DROP : XDP_PASS;
}
