#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return p->length > 100 ? DROP : FORWARD(peer(p));
}
//> member_unknown.c:6:12: error: no member named 'length' in 'struct packet'
//> member_unknown.c: clang does not compile it
//> help: a packet has `port`, `queue`, `time` and `ports`; packet_length(p) is its length, packet_at(p, offset, TYPE) its bytes
