#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(struct packet *p)
{
	return DROP;
}
//> handler_with_type.c:4:11: error: invalid parameter name: 'struct' is a keyword
//> handler_with_type.c: clang does not compile it
//> help: ON_PACKET takes the packet's name alone: `ON_PACKET(p)`
