#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	bpf_printk("%u", packet_length(p));
	return FORWARD(peer(p));
}
//> prints.c:6:2: error: call to undeclared function 'bpf_printk'; ISO C99 and later do not support implicit function declarations [-Wimplicit-function-declaration]
//> prints.c: clang does not compile it
//> help: name drops with `DROP_BECAUSE(reason)` and count in a state object: both can be read while it runs
