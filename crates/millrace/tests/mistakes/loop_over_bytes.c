#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u32 at = 0;
	__u8 *byte;

	while ((byte = packet_bytes(p, at, 1)) && *byte)
		at += *byte & 1;
	return at ? FORWARD(peer(p)) : DROP;
}
//> loop_over_bytes.c:9: while ((byte = packet_bytes(p, at, 1)) && *byte)
//> unbounded-loop: this loop was followed round by round, and had not ended when 1000000 instructions had been followed in all
//> help: Count its rounds up to a constant: `for (int i = 0; i < 64; i++)`, with every other way out as a `break`.
