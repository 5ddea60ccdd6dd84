/* A stateless packet filter: an access control list of any length says what passes. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

/* What rules speak of. Protocols without ports have ports 0. */
struct tuple {
	__be32 src;
	__be32 dst;
	__be16 sport;
	__be16 dport;
	__u8 protocol;
	__u8 zero[3];
};

/* Classes of packets; a packet of no rule is UNKNOWN. */
enum { UNKNOWN, PERMIT, DENY, CLASSES };

/* Set from outside, with --map acl=FILE. */
CLASSIFIER(acl, struct tuple, .classes = CLASSES, .capacity = 1048576);

/* Whether what no rule names passes. */
PARAM(__u8, open, 0);

/* The tuple of an IPv4 packet; false when its transport header is not wholly there. */
static _Bool tuple_of(const struct packet *p, __u32 at, const struct ipv4 *ip, struct tuple *t)
{
	__u32 limit = at + ntohs(ip->length), ports = 0;
	struct transport transport;
	__u8 protocol = ip->protocol;

	t->src = ip->src;
	t->dst = ip->dst;
	t->protocol = protocol;
	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) {
		if (ports_at(p, at + ipv4_header_bytes(ip), limit, protocol, &ports, &transport) != FLOW_OWN)
			return 0;
	}
	t->sport = (__be16)ports;
	t->dport = (__be16)(ports >> 16);
	return 1;
}

ON_PACKET(p)
{
	struct tuple t = { 0 };
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p)); /* not ours to judge */
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	if (ipv4_later_fragment(ip))
		return DROP_BECAUSE(fragment);
	if (!tuple_of(p, at, ip, &t))
		return DROP_BECAUSE(bad_header);
	switch (classify(&acl, &t)) {
	case PERMIT:
		return FORWARD(peer(p));
	case DENY:
		return DROP_BECAUSE(denied);
	default:
		return open ? FORWARD(peer(p)) : DROP_BECAUSE(no_rule);
	}
}
