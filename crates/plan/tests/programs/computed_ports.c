/* Counts by the sender and a number that is computed from the ports of TCP and UDP. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct number {
	__u32 sender;
	__u32 value;
};

struct count {
	__u64 packets;
};

MAP(counts, struct number, struct count, .capacity = 65536);

/* Tests put other ones in these lines' place. */
#define SENDER (f.src)
#define KEY (ntohs(f.sport) + ntohs(f.dport))

ON_PACKET(p)
{
	struct flow4_headers headers;
	struct number number;
	struct count *found;
	struct flow4 f;

	if (packet_find_flow4(p, &f, &headers) != FLOW_OWN || f.protocol == PROTOCOL_ICMP)
		return FORWARD(peer(p));
	number.sender = SENDER;
	number.value = KEY;
	found = map_get(&counts, &number);
	if (!found)
		found = map_put(&counts, &number, &(struct count){ 0 });
	if (!found)
		return DROP_BECAUSE(table_full);
	if (++found->packets > 20)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
