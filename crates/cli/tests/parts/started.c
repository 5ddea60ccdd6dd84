/* Elements that hold something before the first packet, and a timer that adds. */
#include <millrace/nf.h>

VECTOR(counts, __u64, .capacity = 4);
VECTOR(ticks, __u64, .capacity = 2);

ON_START()
{
	__u64 *n = vector_at(&counts, 1);

	if (n)
		*n = 17;
}

EVERY(MILLISECONDS(1))
{
	__u64 *n = vector_at(&ticks, 0);

	if (n)
		*n += 1;
}

ON_PACKET(p)
{
	__u64 *n = vector_at(&counts, packet_length(p) & 3);

	if (n)
		*n += 1;
	return FORWARD(p->port);
}
