#include <millrace/nf.h>
PORTS(LAN, WAN);
static _Atomic __u64 total;

ON_PACKET(p)
{
	total++;
	return FORWARD(peer(p));
}
//> atomic_type.c:3:8: error: an NF sees one packet at a time: no locks, atomics or threads; read and write plainly, the plan keeps packets in order
//> atomic_type.c: clang does not compile it
//> help: use a plain variable and plain `+=`
