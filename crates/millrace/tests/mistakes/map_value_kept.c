#include <millrace/nf.h>

PORTS(LAN, WAN);
MAP(seen, __u32, __u64, .capacity = 64);
MAP(last, __u32, __u64, .capacity = 64);

ON_PACKET(p)
{
	__u32 key = p->port;
	__u64 value = (__u64)(long)map_get(&seen, &key);

	map_put(&last, &key, &value);
	return FORWARD(peer(p));
}
//> map_value_kept.c:12: map_put(&last, &key, &value);
//> partial-pointer: part of a pointer that is kept on the stack is read as a number
//> help: Load the pointer as a whole (8 bytes), and keep it out of keys and values.
