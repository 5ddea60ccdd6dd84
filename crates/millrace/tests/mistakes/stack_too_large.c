#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u8 buffer[4096] = { 0 };
	__u32 length = packet_length(p);

	buffer[length & 4095] = 1;
	return buffer[length >> 4 & 4095] ? DROP : FORWARD(peer(p));
}
//> stack_too_large.c:6:7: error: A call to built-in function 'memset' is not supported.
//> stack_too_large.c: clang does not compile it
//> help: this is more than the stack has, 512 bytes, or of no constant size: keep large arrays in a VECTOR
