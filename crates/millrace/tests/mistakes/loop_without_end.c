#include <millrace/nf.h>
PORTS(LAN, WAN);
static volatile __u32 n;

ON_PACKET(p)
{
	while (packet_length(p) > 10)
		n = n * 3 + p->queue;
	return n ? DROP : FORWARD(peer(p));
}
//> loop_without_end.c:8: n = n * 3 + p->queue;
//> unbounded-loop: this loop comes round without any change in what is known, so nothing shows that it ends
//> help: Count its rounds up to a constant: `for (int i = 0; i < 64; i++)`, with every other way out as a `break`.
