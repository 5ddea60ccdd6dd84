#include <millrace/nf.h>

PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u32 at = 34;
	__u8 *option;
	
	while ((option = packet_bytes(p, at, 2))) {
		if (option[0] == 8)
			return DROP;
		at += option[1];
	}
	return FORWARD(peer(p));
}
