#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .expire_after = SECONDS(1));

ON_PACKET(p)
{
	return DROP;
}
//> map_without_capacity.c:3: map `flows`: 0 entries; 1 to 67108864 are possible (`flows`)
//> help: change the declaration
