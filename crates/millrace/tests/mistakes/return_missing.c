#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	if (packet_length(p) > 100)
		return DROP;
}
//> return_missing.c:8:1: warning: non-void function does not return a value in all control paths [-Wreturn-type]
//> 8 | }
//> | ^
