#include <millrace/nf.h>
PORTS(LAN, WAN);

EVERY(0)
{
}

ON_PACKET(p)
{
	return DROP;
}
//> timer_without_period.c:4: timer 0 has a period of 0 ns
//> help: give EVERY a period of at least 1 ns
