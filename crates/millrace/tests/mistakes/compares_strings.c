#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	char name[4] = "abc";

	return strcmp(name, "abd") ? DROP : FORWARD(peer(p));
}
//> compares_strings.c:8:9: error: call to undeclared library function 'strcmp' with type 'int (const char *, const char *)'; ISO C99 and later do not support implicit function declarations [-Wimplicit-function-declaration]
//> compares_strings.c: clang does not compile it
//> help: compare and copy with `__builtin_memcmp` and `__builtin_memcpy` of a constant size, or assign structs
