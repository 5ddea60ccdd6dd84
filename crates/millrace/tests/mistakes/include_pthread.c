#include <pthread.h>
#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return DROP;
}
//> include_pthread.c:1: error: `pthread.h` belongs to the host's C library, which a network function does not have
//>   help: a function sees one packet at a time and needs no locks, atomics or threads: the plan spreads it over cores
//> In file included from include_pthread.c:1:
//> include_pthread.c: clang does not compile it
//> help: leave the header out; the line below the first says what there is instead
