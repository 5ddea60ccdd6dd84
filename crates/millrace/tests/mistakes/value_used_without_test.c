#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 100);

ON_PACKET(p)
{
	struct flow f;
	struct session *s;

	if (!packet_flow(p, &f))
		return DROP;
	s = map_get(&flows, &f);
	s->note++;
	return FORWARD(peer(p));
}
//> value_used_without_test.c:13: s->note++;
//> unchecked-null: this load follows the result of a lookup in `flows`, which may be null
//> help: Before it, insert `if (!pointer) return …;`.
