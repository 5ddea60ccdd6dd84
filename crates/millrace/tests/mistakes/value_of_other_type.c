#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 100);

ON_PACKET(p)
{
	struct flow f;
	__u32 value = 0;

	if (!packet_flow(p, &f))
		return DROP;
	return map_put(&flows, &f, &value) ? FORWARD(peer(p)) : DROP;
}
//> value_of_other_type.c:12:9: error: incompatible pointer types initializing 'const typeof (*(&flows)->value) *' (aka 'const struct session *') with an expression of type '__u32 *' (aka 'unsigned int *') [-Werror,-Wincompatible-pointer-types]
//>    12 |         return map_put(&flows, &f, &value) ? FORWARD(peer(p)) : DROP;
//> value_of_other_type.c: clang does not compile it
//> help: give the address of a value of the type that the object is declared with
