#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	struct flow f;

	if (!packet_flow(p, &f))
		return DROP;
	return map_get(&sessions, &f) ? FORWARD(peer(p)) : DROP;
}
//> object_not_declared.c:10:18: error: use of undeclared identifier 'sessions'
//>    10 |         return map_get(&sessions, &f) ? FORWARD(peer(p)) : DROP;
//> object_not_declared.c: clang does not compile it
//> help: declare it above its use; state objects are declared outside of functions, with MAP, VECTOR, ALLOCATOR, SKETCH or LPM
