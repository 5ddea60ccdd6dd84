#include <millrace/nf.h>

PORTS(LAN, WAN);

ON_PACKET(p)
{
	struct ethernet *e = packet_at(p, 0, struct ethernet);
	
	if (!e)
		return DROP;
	return load32((__u8 *)e + 26) ? FORWARD(peer(p)) : DROP;
}
