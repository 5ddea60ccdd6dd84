#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .size = 100);

ON_PACKET(p)
{
	return DROP;
}
//> map_with_unknown_option.c:3:42: error: field designator 'size' does not refer to any field in type 'struct millrace_options'
//> map_with_unknown_option.c: clang does not compile it
//> help: docs/state-kinds.md lists the options of each kind, `.capacity` and `.expire_after` among them
