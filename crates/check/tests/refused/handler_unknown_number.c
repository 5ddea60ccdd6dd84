#include <millrace/nf.h>

PORTS(LAN, WAN);
static long (*const nothing)(void) = (void *)9999;

ON_PACKET(p)
{
	return nothing() ? FORWARD(peer(p)) : DROP;
}
