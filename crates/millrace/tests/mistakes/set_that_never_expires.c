#include <millrace/nf.h>
#include <millrace/set.h>
PORTS(LAN, WAN);
PACKET_SET(flows, struct flow, struct session, .capacity = 64);

SET_KEY(p, key)
{
	return packet_flow(p, key);
}

ON_FIRST_PACKET(p, key)
{
	return FORWARD(peer(p));
}

ON_PACKET(p, state)
{
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return DROP;
}

ON_EXPIRY(p, key, state)
{
}
//> set_that_never_expires.c:4: map `flows`: it has ON_EXPIRY and no .expire_after, so that nothing expires (`flows`)
//> help: change the declaration
