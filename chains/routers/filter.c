/* Lets UDP to port 53 through from neither side, and no fragments. */
#include <millrace/nf.h>

#include <millrace/udp.h>

PORTS(inside, outside);

ON_PACKET(p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct udp *udp;
	struct ipv4 *ip;

	if (!ethernet || ethernet->type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, 14);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	if (ntohs(ip->fragment) & 0x3fff)
		return DROP_BECAUSE(fragment);
	if (ip->protocol != PROTOCOL_UDP)
		return FORWARD(peer(p));
	udp = packet_at(p, 14 + ipv4_header_bytes(ip), struct udp);
	if (!udp || udp->dport == htons(53))
		return DROP_BECAUSE(not_here);
	return FORWARD(peer(p));
}
