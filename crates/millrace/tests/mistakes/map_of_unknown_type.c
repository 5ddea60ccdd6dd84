#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flows, struct session, .capacity = 100);

ON_PACKET(p)
{
	return DROP;
}
//> map_of_unknown_type.c:3:1: error: array has incomplete element type 'struct flows'
//> map_of_unknown_type.c: clang does not compile it
//> help: declare the struct in full before the object
