#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 100);

ON_PACKET(p)
{
	struct flow f;

	if (!packet_flow(p, &f))
		return DROP;
	return map_get(&flows, f) ? FORWARD(peer(p)) : DROP;
}
//> key_without_address.c:11:9: error: initializing 'const typeof (*(&flows)->key) *' (aka 'const struct flow *') with an expression of incompatible type 'struct flow'; take the address with &
//>    11 |         return map_get(&flows, f) ? FORWARD(peer(p)) : DROP;
//> key_without_address.c: clang does not compile it
//> help: keys and values are passed by their address: `map_get(&flows, &flow)`
