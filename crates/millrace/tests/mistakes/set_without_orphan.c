#include <millrace/nf.h>
#include <millrace/set.h>
PORTS(LAN, WAN);
PACKET_SET(flows, struct flow, struct session, .capacity = 64, .expire_after = SECONDS(1));

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
//> set_without_orphan.c:4:1: error: function 'millrace_set_orphan' has internal linkage but is not defined [-Werror,-Wundefined-internal]
//> set_without_orphan.c: clang does not compile it
//> help: a function with PACKET_SET has an ON_ORPHAN(p), for packets that are in no set
