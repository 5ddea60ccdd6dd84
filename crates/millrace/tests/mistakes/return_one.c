#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return 1;
}
//> return_one.c:6: warning: 1 is returned here, which is no verdict: the packet is dropped and counted as `reason_1`
//> return 1;
//> help: return FORWARD(port), FLOOD, CONSUME, PASS, DROP or DROP_BECAUSE(reason)
