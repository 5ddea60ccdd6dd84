#include <millrace/nf.h>

#include "library/peek.h"

PORTS(LAN, WAN);

ON_PACKET(p)
{
	if (p->port == WAN)
		return FORWARD(LAN);
	return peek(p, 23) == PROTOCOL_TCP ? FORWARD(WAN) : DROP;
}
