#include <millrace/nf.h>
PORTS(LAN, WAN);
static int one(struct packet *p) { return p->queue ? DROP : FLOOD; }
static int two(struct packet *p) { return p->queue ? FLOOD : DROP; }
static int (*table[])(struct packet *) = { one, two };

ON_PACKET(p)
{
	return table[packet_length(p) & 1](p);
}
//> function_pointer.c:9: function_pointer: `.rodata` is in a section whose initial values contain addresses (`millrace_on_packet`)
//> help: use an array of numbers or a switch instead of a table of pointers
