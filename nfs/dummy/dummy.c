/* An array of 10,000 elements, one of which each packet reads, or reads and writes: the load by which ways to share state
 * are measured (Yan et al., Transparent Multicore Scaling of Single-Threaded Network Functions, EuroSys 2024, figure 6).
 * Which element, the traffic says, so that its skew is the trace's. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

PARAM(__u64, writes, 1); /* 0: packets read only */
PARAM(__u64, most, 0);   /* packets an element before it drops; 0: any number */

#define ELEMENTS 10000

struct element {
	__u64 packets;
};

VECTOR(elements, struct element, .capacity = ELEMENTS);

ON_PACKET(p)
{
	struct element *element;
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	element = vector_at(&elements, ntohl(ip->dst) % ELEMENTS);
	if (!element)
		return FORWARD(peer(p));
	if (most && element->packets >= most)
		return DROP_BECAUSE(element_full);
	if (writes)
		element->packets++;
	return FORWARD(peer(p));
}
