#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	struct flow f;
	void *at = packet_at(p, 0, struct ethernet);

	return at > (void *)&f ? DROP : FORWARD(peer(p));
}
//> pointers_compared.c:9: return at > (void *)&f ? DROP : FORWARD(peer(p));
//> pointer-comparison: this branch compares a pointer with something that is not known to be a pointer into the same memory; what it finds would tell where the host put things
//> help: Compare packet pointers with `data_end`, results of lookups with null, and to tell two entries apart their keys.
