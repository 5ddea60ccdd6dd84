#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 4000000000);

ON_PACKET(p)
{
	return DROP;
}
//> map_too_large.c:3: map `flows`: 4000000000 entries; 1 to 67108864 are possible (`flows`)
//> help: change the declaration
