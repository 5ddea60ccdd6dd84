/* What the bodies of handlers.cases stand in: an object of each kind, and an IPv4 packet. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct count {
	__u64 packets;
	__u64 bytes;
};

MAP(map, struct address, struct count, .capacity = 1024);
MAP(aged, struct address, struct count, .capacity = 1024, .expire_after = SECONDS(10));
VECTOR(vector, struct count, .capacity = 256);
ALLOCATOR(numbers, struct count, .capacity = 256);
SKETCH(sketch, struct address, .rows = 4, .capacity = 256, .window = SECONDS(10));
LPM(prefixes, __be32, struct count, .capacity = 64);

static __u64 n; /* the one in .bss */

static __always_inline __u32 body(struct packet *p, struct address source, __u32 length);

ON_PACKET(p)
{
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	return body(p, address_from_ipv4(ip->src), ntohs(ip->length));
}

static __always_inline __u32 body(struct packet *p, struct address source, __u32 length)
{
