#include <millrace/nf.h>
PORTS(LAN, WAN);
struct limits { __u32 most; };
PARAM(struct limits, limits, { 0 });

ON_PACKET(p)
{
	return limits.most ? DROP : FORWARD(peer(p));
}
//> parameter_of_struct.c:4:1: warning: '(' and '{' tokens introducing statement expression appear in different macro expansion contexts [-Wcompound-token-split-by-macro]
//> parameter_of_struct.c: clang does not compile it
//> help: a PARAM is a number or an address; a setting of several parts is several PARAMs
