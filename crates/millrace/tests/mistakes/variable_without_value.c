#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u32 next;

	if (packet_length(p) > 100)
		next = 1;
	return FORWARD(next);
}
//> variable_without_value.c:8:6: warning: variable 'next' is used uninitialized whenever 'if' condition is false [-Wsometimes-uninitialized]
//> 8 |         if (packet_length(p) > 100)
//> |             ^~~~~~~~~~~~~~~~~~~~~~
