#include <millrace/nf.h>
PORTS(LAN, WAN);
int elsewhere(struct packet *p);

ON_PACKET(p)
{
	return elsewhere(p);
}
//> function_not_defined.c:7: function_not_defined: `elsewhere` is declared but defined nowhere in this object (`millrace_on_packet`)
//> help: define `elsewhere` in the same file, or link the objects with `bpftool gen object`
