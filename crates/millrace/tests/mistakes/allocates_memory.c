#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u64 *n = malloc(8);

	return n ? DROP : FORWARD(peer(p));
}
//> allocates_memory.c:6:13: error: call to undeclared library function 'malloc' with type 'void *(unsigned long)'; ISO C99 and later do not support implicit function declarations [-Wimplicit-function-declaration]
//> allocates_memory.c: clang does not compile it
//> help: memory is declared as state: MAP, VECTOR, ALLOCATOR, SKETCH, LPM
