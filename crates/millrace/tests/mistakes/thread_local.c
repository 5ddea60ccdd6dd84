#include <millrace/nf.h>
PORTS(LAN, WAN);
static __thread __u64 total;

ON_PACKET(p)
{
	total++;
	return FORWARD(peer(p));
}
//> thread_local.c:3:8: error: an NF sees one packet at a time: no locks, atomics or threads; read and write plainly, the plan keeps packets in order
//> thread_local.c: clang does not compile it
//> help: use a plain variable and plain `+=`
