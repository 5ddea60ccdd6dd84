#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u8 *data = (void *)(long)p->data;

	return data[12] == 8 ? FORWARD(peer(p)) : DROP;
}
//> data_without_bounds.c:8: return data[12] == 8 ? FORWARD(peer(p)) : DROP;
//> packet-bounds: this load touches byte 12 of the packet, but none is known to be there
//> help: Before it, insert `if (!pointer) return …;` for the pointer that `packet_at` gave; a TYPE of at least 13 bytes from the frame's start, or `packet_bytes(p, 0, 13)`, covers this access.
