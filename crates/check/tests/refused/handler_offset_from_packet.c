#include <millrace/nf.h>

PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u8 *frame = packet_bytes(p, 0, 34);
	
	if (!frame)
		return DROP;
	return frame[frame[14]] ? FORWARD(peer(p)) : DROP;
}
