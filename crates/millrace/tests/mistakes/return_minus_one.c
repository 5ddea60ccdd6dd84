#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	if (packet_length(p) < 60)
		return -1;
	return FORWARD(peer(p));
}
//> return_minus_one.c:6: warning: -1 is returned here, which is no verdict: the packet is aborted
//> if (packet_length(p) < 60)
//> help: return FORWARD(port), FLOOD, CONSUME, PASS, DROP or DROP_BECAUSE(reason)
