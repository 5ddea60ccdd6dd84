#include <stdio.h>
#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	printf("%u\n", packet_length(p));
	return DROP;
}
//> include_stdio.c:1: error: `stdio.h` belongs to the host's C library, which a network function does not have
//>   help: name drops with `DROP_BECAUSE(reason)` and count in a state object: both can be read while it runs
//> In file included from include_stdio.c:1:
//> include_stdio.c: clang does not compile it
//> help: leave the header out; the line below the first says what there is instead
