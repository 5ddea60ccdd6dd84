#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return;
}
//> return_nothing.c:6:2: error: non-void function 'millrace_on_packet' should return a value [-Wreturn-mismatch]
//> return_nothing.c: clang does not compile it
//> help: return FORWARD(port), FLOOD, CONSUME, PASS, DROP or DROP_BECAUSE(reason)
