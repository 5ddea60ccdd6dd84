#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return FORWARD();
}
//> forward_without_port.c:6:9: error: expected expression
//> forward_without_port.c: clang does not compile it
//> help: fix what clang shows above
