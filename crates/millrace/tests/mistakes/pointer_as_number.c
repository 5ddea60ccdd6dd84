#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return FORWARD((__u32)(long)p);
}
//> pointer_as_number.c:6: return FORWARD((__u32)(long)p);
//> pointer-arithmetic: `and` on a pointer gives something that is no longer known to be inside its memory
//> help: On pointers, only add and subtract 64-bit numbers, and subtract pointers into the same memory.
