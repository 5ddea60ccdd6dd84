#include <millrace/nf.h>
PORTS(LAN, WAN);
static const __u32 a = 1, b = 2;
static const __u32 *const both[] = { &a, &b };

ON_PACKET(p)
{
	return *both[packet_length(p) & 1] == 1 ? DROP : FLOOD;
}
//> table_of_pointers.c:8: table_of_pointers: `.rodata` is in a section whose initial values contain addresses (`millrace_on_packet`)
//> help: use an array of numbers or a switch instead of a table of pointers
