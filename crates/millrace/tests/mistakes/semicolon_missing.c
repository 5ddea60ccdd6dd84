#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u32 length = packet_length(p)

	return length > 100 ? DROP : FORWARD(peer(p));
}
//> semicolon_missing.c:6:33: error: expected ';' at end of declaration
//> semicolon_missing.c: clang does not compile it
//> help: fix what clang shows above
