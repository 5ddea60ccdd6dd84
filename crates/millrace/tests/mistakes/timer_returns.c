#include <millrace/nf.h>
PORTS(LAN, WAN);

EVERY(SECONDS(1))
{
	return 1;
}

ON_PACKET(p)
{
	return DROP;
}
//> timer_returns.c:6:2: error: void function 'millrace_every_0' should not return a value [-Wreturn-mismatch]
//> timer_returns.c: clang does not compile it
//> help: handlers other than ON_PACKET return nothing: `return;`
