#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u8 *data = p->data;

	return data[12] == 8 ? FORWARD(peer(p)) : DROP;
}
//> data_as_pointer.c:6:8: error: incompatible integer to pointer conversion initializing '__u8 *' (aka 'unsigned char *') with an expression of type 'const __u32' (aka 'const unsigned int') [-Wint-conversion]
//> data_as_pointer.c: clang does not compile it
//> help: the packet's bytes come from `packet_at(p, OFFSET, TYPE)`, which is NULL where the packet is shorter
