#include <millrace/nf.h>
PORTS(LAN, WAN);
static __u64 total;

ON_PACKET(p)
{
	__sync_fetch_and_add(&total, 1);
	return FORWARD(peer(p));
}
//> atomic_builtin.c:7:2: error: an NF sees one packet at a time: no locks, atomics or threads; read and write plainly, the plan keeps packets in order
//> atomic_builtin.c: clang does not compile it
//> help: use a plain variable and plain `+=`
