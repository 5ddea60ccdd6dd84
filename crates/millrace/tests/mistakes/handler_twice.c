#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return DROP;
}

ON_PACKET(q)
{
	return FLOOD;
}
//> handler_twice.c:9:1: error: redefinition of 'millrace_on_packet'
//> handler_twice.c: clang does not compile it
//> help: a function has exactly one ON_PACKET: join the two, or make two functions and a chain of them
