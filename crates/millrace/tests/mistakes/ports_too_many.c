#include <millrace/nf.h>
PORTS(A, B, C, D, E, F, G, H, I);

ON_PACKET(p)
{
	return DROP;
}
//> ports_too_many.c:2:1: error: called object type 'int' is not a function or function pointer
//> ports_too_many.c: clang does not compile it
//> help: PORTS takes one to eight names
