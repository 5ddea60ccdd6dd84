#include <millrace/nf.h>

PORTS(LAN, WAN);
VECTOR(kept, void *, .capacity = 1);

ON_PACKET(p)
{
	void *frame = packet_bytes(p, 0, 14);
	void **slot = vector_at(&kept, 0);
	
	if (frame && slot)
		*slot = frame;
	return FORWARD(peer(p));
}
