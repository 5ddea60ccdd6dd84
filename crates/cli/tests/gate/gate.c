/* A function for the tests of the command: a frame's first byte says what is to become of it. */
#include <millrace/nf.h>

PORTS(LAN, WAN, DMZ);

PARAM(__u32, limit, 1000); /* frames a byte value may have */

MAP(seen, __u64, __u64, .capacity = 256);
VECTOR(seconds, __u64, .capacity = 1);

EVERY(SECONDS(1))
{
	__u64 *count = vector_at(&seconds, 0);

	if (count)
		*count += 1;
}

ON_PACKET(p)
{
	__u8 *first = packet_at(p, 0, __u8);
	__u64 key, one = 1, *count;

	if (!first)
		return DROP_BECAUSE(empty);
	key = *first;
	count = map_get(&seen, &key);
	if (count) {
		if (*count >= limit)
			return DROP_BECAUSE(over_limit);
		*count += 1;
	} else if (!map_put(&seen, &key, &one)) {
		return DROP_BECAUSE(table_full);
	}
	switch (key) {
	case 1:
		return FORWARD(WAN);
	case 2:
		return FORWARD(DMZ);
	case 3:
		return FLOOD;
	case 4:
		return CONSUME;
	case 5:
		return PASS;
	case 6:
		return FORWARD(9);
	case 7:
		*first = 0xee;
		return FORWARD(LAN);
	}
	return DROP;
}
