#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 100);
MAP(flows, struct flow, struct session, .capacity = 100);

ON_PACKET(p)
{
	return DROP;
}
//> map_declared_twice.c:4:5: error: redefinition of 'flows' with a different type: 'struct (unnamed struct at map_declared_twice.c:4:1)' vs 'struct (unnamed struct at map_declared_twice.c:3:1)'
//> map_declared_twice.c: clang does not compile it
//> help: give each object and function a name of its own
