#include <millrace/nf.h>

PORTS(LAN, WAN);
ON_PACKET(p)
{
	struct tcp *tcp = packet_tcp(p);

	return tcp->flags & TCP_SYN ? DROP : FORWARD(peer(p));
}
