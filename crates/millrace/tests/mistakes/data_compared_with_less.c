#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u8 *data = (void *)(long)p->data;

	if (data + 12 > (__u8 *)(long)p->data_end)
		return DROP;
	return data[12] == 8 ? FORWARD(peer(p)) : DROP;
}
//> data_compared_with_less.c:10: return data[12] == 8 ? FORWARD(peer(p)) : DROP;
//> packet-bounds: this load touches byte 12 of the packet, but only the first 12 are known to be there
//> help: Before it, insert `if (!pointer) return …;` for the pointer that `packet_at` gave; a TYPE of at least 13 bytes from the frame's start, or `packet_bytes(p, 0, 13)`, covers this access.
