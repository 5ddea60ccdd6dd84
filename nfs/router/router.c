/* A router: it has an address on each port, answers for it, and sends packets on by its table (RFC 1812). */
#include "forward4.h"
#include "forward6.h"

ON_START()
{
	start_tables();
}

ON_PACKET(p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct interface *interface = vector_at(&interfaces, p->port);
	_Bool ours;
	int verdict;

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	if (!interface || (!interface->address && IS_ZERO(interface->address6)))
		return DROP_BECAUSE(no_address);
	ours = same_mac(ethernet->dst, interface->mac);
	if (!ours && !(ethernet->dst[0] & 1))
		return DROP_BECAUSE(not_ours);
	if (ethernet->type == htons(ETHERTYPE_ARP))
		return on_arp(p, interface);
	if (ethernet->type == htons(ETHERTYPE_IPV4)) {
		verdict = ours ? on_ipv4(p, interface) : DROP_BECAUSE(not_ours);
		return IS_ERROR(verdict) ? error4(p, interface, verdict) : verdict;
	}
	if (ethernet->type == htons(ETHERTYPE_IPV6)) {
		verdict = on_ipv6(p, interface, ours);
		return IS_ERROR(verdict) ? error6(p, interface, verdict) : verdict;
	}
	return DROP_BECAUSE(not_ip);
}
