#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	return FORWARD(packet_length(p) / 0);
}
//> division_by_zero.c:6:34: warning: division by zero is undefined [-Wdivision-by-zero]
//> division_by_zero.c:6: return FORWARD(packet_length(p) / 0);
//> uninitialised-register: r0 is read, but on this way through the program nothing has been written to it
//> help: Give the variable a value where it is declared.
