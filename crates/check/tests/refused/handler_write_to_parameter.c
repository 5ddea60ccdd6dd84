#include <millrace/nf.h>

PORTS(LAN, WAN);
PARAM(__u64, rate, 5);

ON_PACKET(p)
{
	*(volatile __u64 *)&rate = 6;
	return FORWARD(peer(p));
}
