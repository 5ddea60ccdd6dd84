#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u8 *data = p->data;

	return data[12] == 8 ? FORWARD(peer(p)) : DROP;
}
