#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	double share = packet_length(p) * 0.5;

	return share > 100 ? DROP : FORWARD(peer(p));
}
//> floating_point.c:6:17: error: A call to built-in function '__floatunsidf' is not supported.
//> floating_point.c: clang does not compile it
//> help: BPF has no floating point: count in a smaller unit, multiply before dividing, or use multiply_high of intrinsics.h
