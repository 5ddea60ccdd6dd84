/* What the LAN opens by IPv6 the WAN may answer: TCP and UDP by their ports, an echo by its identifier, behind
 * whatever extension headers. The tests of the model build it as it is, and with the answer's ports left as
 * they are. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

MAP(flows, struct flow, struct session, .capacity = 1024);

ON_PACKET(p)
{
	struct address src;
	struct flow f;

	if (!packet_flow(p, &f) || f.version != 6)
		return DROP_BECAUSE(other);
	if (p->port == LAN)
		return map_put(&flows, &f, &(struct session){}) ? FORWARD(WAN) : DROP_BECAUSE(table_full);
	src = f.src;
	f.src = f.dst;
	f.dst = src;
	f.ports = PORTS_REVERSED(f.ports);
	return map_get(&flows, &f) ? FORWARD(LAN) : DROP_BECAUSE(unknown);
}
