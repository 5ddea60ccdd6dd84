/* A handler: right IPv4 headers alone, no connections that the outside opens, TCP to low ports only from the inside. */
#include <millrace/nf.h>

#include <millrace/tcp.h>

PORTS(INSIDE, OUTSIDE);

ON_PACKET(p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct tcp *tcp;
	struct ipv4 *ip;

	if (!ethernet)
		return DROP_BECAUSE(short_frame);
	if (ethernet->type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, 14);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	if (ip->protocol != PROTOCOL_TCP || ntohs(ip->fragment) & 0x1fff || p->port == INSIDE)
		return FORWARD(peer(p));
	tcp = packet_at(p, 14 + ipv4_header_bytes(ip), struct tcp);
	if (!tcp)
		return DROP_BECAUSE(short_frame);
	if ((tcp->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN || ntohs(tcp->dport) < 1024)
		return DROP_BECAUSE(not_asked_for);
	return FORWARD(peer(p));
}
