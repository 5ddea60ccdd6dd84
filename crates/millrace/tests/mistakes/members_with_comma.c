#include <millrace/nf.h>

PORTS(LAN, WAN);

VECTOR(seen, struct { __u64 packets, bytes; }, .capacity = 4);

ON_PACKET(p)
{
	return FORWARD(peer(p));
}
//> members_with_comma.c:5:1: error: expected ';' at end of declaration list
//> members_with_comma.c: clang does not compile it
//> help: a comma between the braces of a type ends the macro's argument: give each member a declaration of its own, `__u64 a; __u64 b;`, or declare the struct above and name it here
