#include <millrace/nf.h>
PORTS(LAN, WAN);
VECTOR(counts, __u64, 16);

ON_PACKET(p)
{
	__u32 i = 0;

	return map_get(&counts, &i) ? FORWARD(peer(p)) : DROP;
}
//> vector_in_a_map_call.c:9: return map_get(&counts, &i) ? FORWARD(peer(p)) : DROP;
//> helper-argument: argument 1 of `map_get` is `counts`, a vector; it works on: map
//> help: Use the helper that belongs to this kind of object, or declare the object as one of these kinds.
