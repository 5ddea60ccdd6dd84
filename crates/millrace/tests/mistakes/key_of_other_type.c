#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 100);

ON_PACKET(p)
{
	__u32 key = 1;

	return map_get(&flows, &key) ? FORWARD(peer(p)) : DROP;
}
//> key_of_other_type.c:9:9: error: incompatible pointer types initializing 'const typeof (*(&flows)->key) *' (aka 'const struct flow *') with an expression of type '__u32 *' (aka 'unsigned int *') [-Werror,-Wincompatible-pointer-types]
//> key_of_other_type.c: clang does not compile it
//> help: give the address of a key of the type that the object is declared with
