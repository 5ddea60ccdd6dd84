PORTS(LAN, WAN);

ON_PACKET(p)
{
	return DROP;
}
//> include_missing.c:1:1: error: type specifier missing, defaults to 'int'; ISO C99 and later do not support implicit int [-Wimplicit-int]
//> include_missing.c: clang does not compile it
//> help: begin with `#include <millrace/nf.h>`
