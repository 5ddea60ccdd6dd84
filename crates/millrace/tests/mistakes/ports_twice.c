#include <millrace/nf.h>
PORTS(LAN, WAN);
PORTS(A, B);

ON_PACKET(p)
{
	return DROP;
}
//> ports_twice.c:3:1: error: redefinition of 'millrace_port'
//> ports_twice.c: clang does not compile it
//> help: name all ports in one PORTS
