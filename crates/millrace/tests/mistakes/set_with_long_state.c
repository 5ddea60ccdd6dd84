#include <millrace/nf.h>
#include <millrace/set.h>
PORTS(LAN, WAN);
PACKET_SET(flows, struct flow, struct { __u8 bytes[500]; }, .capacity = 64, .expire_after = SECONDS(1));

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
//> set_with_long_state.c:4: map `flows`: key and state take 544 bytes, and ON_EXPIRY gets copies of both in a stack of 512 (`flows`)
//> help: change the declaration
