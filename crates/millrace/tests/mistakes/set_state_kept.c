#include <millrace/nf.h>
#include <millrace/set.h>
PORTS(LAN, WAN);
PACKET_SET(flows, struct flow, struct session, .capacity = 64, .expire_after = SECONDS(1));

static millrace_set_state *kept;

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
	if (kept)
		kept->note = 1;
	kept = state;
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return DROP;
}

ON_EXPIRY(p, key, state)
{
}
//> set_state_kept.c:21: kept->note = 1;
//> not-a-pointer: this store uses a number (-2^63 to 2^63-1) as an address
//> help: Derive the address from the context, a map value or a variable; numbers cannot become pointers.
