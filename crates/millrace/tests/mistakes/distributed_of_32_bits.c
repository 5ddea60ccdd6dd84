#include <millrace/distributed.h>
#include <millrace/nf.h>
PORTS(LAN, WAN);
DISTRIBUTED(counts, struct { __u32 packets; }, .staleness = 0);

ON_PACKET(p)
{
	distributed_add(&counts, packets, 1);
	return FORWARD(peer(p));
}
//> distributed_of_32_bits.c:8:2: error: static assertion failed due to requirement '__builtin_types_compatible_p(unsigned int, unsigned long long)': a member of DISTRIBUTED is a __u64
//> distributed_of_32_bits.c: clang does not compile it
//> help: declare its members as __u64
