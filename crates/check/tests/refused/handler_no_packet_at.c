#include <millrace/nf.h>

PORTS(LAN, WAN);

ON_PACKET(p)
{
	const __u8 *frame = (const __u8 *)(long)p->data;
	
	return frame[23] == PROTOCOL_TCP ? FORWARD(peer(p)) : DROP;
}
